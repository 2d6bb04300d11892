// The composed kernel direct_merged.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/backend/cuda/driver/module.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

jit::Source merged_source(Plan<ConvolutionProblem> const& plan);
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_merged(Plan<ConvolutionProblem> const& plan,
                                                           Function function);

}  // namespace cosmati::cuda
