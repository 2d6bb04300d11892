// What the module exports: the lists of its candidates.
#include <string>

#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/program.h"

cosmati::cpu::OnednnModule const* cosmati_onednn_module() {
  namespace onednn = cosmati::cpu::onednn;
  static cosmati::cpu::OnednnModule const module = [] {
    cosmati::cpu::OnednnModule lists;
    dnnl_version_t const* const version = dnnl_version();
    lists.version = std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                    std::to_string(version->patch);
    lists.gemm = {onednn::sgemm_candidate(), onednn::tiled_matmul_candidate(), onednn::matmul_candidate()};
    lists.convolution = onednn::convolution_candidates();
    lists.pooling = {onednn::pooling_candidate()};
    lists.activation = {onednn::eltwise_candidate()};
    lists.batch_norm = {onednn::batch_norm_candidate()};
    lists.lrn = {onednn::lrn_candidate()};
    lists.softmax = {onednn::softmax_candidate()};
    return lists;
  }();
  return &module;
}
