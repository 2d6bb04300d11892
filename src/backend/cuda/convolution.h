// Composed convolution kernels: from a plan to its text, and to what launches it.
#pragma once
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

// What the run-time compiler gets for this plan; pure.
jit::Source convolution_source(Plan<ConvolutionProblem> const& plan);

// The sources of the kernels that run before or after the main kernel.
std::vector<jit::Source> convolution_passes(Plan<ConvolutionProblem> const& plan);

// Dynamic shared memory of a block of the plan's kernel.
int convolution_shared_bytes(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::cuda
