// The composed kernels of a filter gradient by direct_tiled: the sums of the blocks, and what adds them.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

enum class FilterTiledPass { sums, parts };
jit::Source filter_tiled_source(Plan<ConvolutionProblem> const& plan, FilterTiledPass pass);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_filter_tiled(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::cuda
