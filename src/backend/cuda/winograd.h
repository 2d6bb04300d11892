// The composed kernels of Winograd's convolution: three transforms; the products use a GEMM kernel.
#pragma once
#include <memory>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

// The sources of the transforms of filters, image and sums.
std::vector<jit::Source> winograd_sources(Plan<ConvolutionProblem> const& plan);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_winograd(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::cuda
