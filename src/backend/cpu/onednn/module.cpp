// The exports of the module: its lists of candidates.
#include <string>
#include <utility>

#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/program.h"
#include "src/backend/cpu/runtime/onednn_isa.h"

namespace {

// Must run before the first call of oneDNN.
void limit_onednn() {
  char const* const isa = cosmati::cpu::onednn_isa();
  if (isa == nullptr) return;
  for (auto const& [name, value] : {std::pair{"SSE41", dnnl_cpu_isa_sse41},
                                    {"AVX2", dnnl_cpu_isa_avx2},
                                    {"AVX512_CORE_BF16", dnnl_cpu_isa_avx512_core_bf16}})
    if (std::string(isa) == name) dnnl_set_max_cpu_isa(value);
}

}  // namespace

cosmati::cpu::OnednnModule const* cosmati_onednn_module() {
  namespace onednn = cosmati::cpu::onednn;
  static cosmati::cpu::OnednnModule const module = [] {
    limit_onednn();
    cosmati::cpu::OnednnModule lists;
    dnnl_version_t const* const version = dnnl_version();
    lists.version = std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                    std::to_string(version->patch);
    lists.gemm = {onednn::sgemm_candidate(), onednn::tiled_matmul_candidate(), onednn::matmul_candidate()};
    lists.convolution = onednn::convolution_candidates();
    lists.pooling = {onednn::pooling_candidate()};
    lists.activation = {onednn::eltwise_candidate()};
    lists.batch_norm = {onednn::batch_norm_candidate()};
    lists.softmax = {onednn::softmax_candidate()};
    return lists;
  }();
  return &module;
}
