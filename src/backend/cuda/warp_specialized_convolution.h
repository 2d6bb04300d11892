// A convolution by warp_specialized_kernel with operands loaded by TMA (conv/tensor_windows.h).
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

jit::Source window_product_source(Plan<ConvolutionProblem> const& plan);
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_window_product(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::cuda
