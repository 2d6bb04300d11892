// Copies of filters. Data gradients read them along the channels of dx, forward convolutions along the
// channels of x or y. If these are not contiguous, every element needs a separate memory request; a pass
// before the product makes those of the result contiguous.
#pragma once
#include "cosmati/ops/convolution.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::plan {

// The filter as matrices: for a data gradient, one for each channel of dy, (channel of dx, tap); for a
// forward convolution, a single one, (channel of y, channel of x and tap).
struct FilterCopy {
  MatrixForm filter;
  Index outer = 0, depth = 0, batch = 0;
  RepackRecipe repack;  // bytes = 0: nothing to gain, or not possible
};
FilterCopy filter_copy(ConvolutionProblem const& problem);

// The part of the product's recipe that describes the copy.
RepackRecipe const& filter_repack(GemmRecipe const& product);

// The problem after the copy.
ConvolutionProblem with_filter_copied(ConvolutionProblem problem, RepackRecipe const& repack);

}  // namespace cosmati::plan
