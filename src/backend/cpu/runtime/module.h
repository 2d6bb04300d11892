// The module that links oneDNN, loaded on first use; the program runs without it.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/activation.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/pooling.h"
#include "cosmati/ops/softmax.h"

namespace cosmati::cpu {

// The module's candidates for each kind of problem, in order of preference.
struct OnednnModule {
  std::string version;
  std::vector<Candidate<GemmProblem>> gemm;
  std::vector<Candidate<ConvolutionProblem>> convolution;
  std::vector<Candidate<PoolingProblem>> pooling;
  std::vector<Candidate<ActivationProblem>> activation;
  std::vector<Candidate<BatchNormProblem>> batch_norm;
  std::vector<Candidate<SoftmaxProblem>> softmax;
};

// Empty, or the reason why oneDNN of this version ("2.6.3") is not used: the known defects are those of 2.6
// and 2.7.
std::string violates_onednn_version(std::string const& version);

// The loaded module, or null with the reason in onednn_module_error().
OnednnModule const* onednn_module();
std::string const& onednn_module_error();

template <class Problem>
void append_from(std::vector<Candidate<Problem>>& list,
                 std::vector<Candidate<Problem>> OnednnModule::*member) {
  if (OnednnModule const* module = onednn_module()) {
    list.insert(list.end(), (module->*member).begin(), (module->*member).end());
    return;
  }
  list.push_back(
      {"onednn",
       {{[](Problem const&, Device const&) { return "oneDNN is not available: " + onednn_module_error(); }}},
       nullptr,
       nullptr});
}

// Appends oneDNN's candidates for this kind of problem; none for kinds that oneDNN does not support.
template <class Problem>
void append_onednn_candidates(std::vector<Candidate<Problem>>&) {}
inline void append_onednn_candidates(std::vector<Candidate<GemmProblem>>& list) {
  append_from(list, &OnednnModule::gemm);
}
inline void append_onednn_candidates(std::vector<Candidate<ConvolutionProblem>>& list) {
  append_from(list, &OnednnModule::convolution);
}
inline void append_onednn_candidates(std::vector<Candidate<PoolingProblem>>& list) {
  append_from(list, &OnednnModule::pooling);
}
inline void append_onednn_candidates(std::vector<Candidate<ActivationProblem>>& list) {
  append_from(list, &OnednnModule::activation);
}
inline void append_onednn_candidates(std::vector<Candidate<BatchNormProblem>>& list) {
  append_from(list, &OnednnModule::batch_norm);
}
inline void append_onednn_candidates(std::vector<Candidate<SoftmaxProblem>>& list) {
  append_from(list, &OnednnModule::softmax);
}

}  // namespace cosmati::cpu

// The module's only exported function; the caller does not own the result.
extern "C" cosmati::cpu::OnednnModule const* cosmati_onednn_module();
