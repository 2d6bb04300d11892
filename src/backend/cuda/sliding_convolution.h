// The composed kernels that slide windows over an image: direct_tiled and depthwise.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/backend/cuda/driver/module.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

jit::Source sliding_source(Plan<ConvolutionProblem> const& plan);
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_sliding(Plan<ConvolutionProblem> const& plan,
                                                            Function function);

}  // namespace cosmati::cuda
