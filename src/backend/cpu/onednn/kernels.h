// The candidates of this module, one function per kernel.
#pragma once
#include "src/backend/cpu/runtime/module.h"

namespace cosmati::cpu::onednn {

Candidate<GemmProblem> matmul_candidate();
Candidate<GemmProblem> sgemm_candidate();
Candidate<GemmProblem> tiled_matmul_candidate();

// True if oneDNN can apply the epilogue before the sums leave its registers.
bool matmul_applies_epilogue(GemmProblem const& problem, Device const& device);

// Convolution in the layouts of the problem, through NHWC copies, and through oneDNN's blocked layouts.
std::vector<Candidate<ConvolutionProblem>> convolution_candidates();

Candidate<PoolingProblem> pooling_candidate();
Candidate<ActivationProblem> eltwise_candidate();
Candidate<BatchNormProblem> batch_norm_candidate();
Candidate<SoftmaxProblem> softmax_candidate();

}  // namespace cosmati::cpu::onednn
