// The filter of a data gradient is read along dx's channels. Where those are no neighbours in memory, each
// element is a request of its own: a pass before the product puts them together.
#pragma once
#include "cosmati/ops/convolution.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::plan {

// The filter as a batch of matrices, one for each channel of dy: (channel of dx, tap).
struct FilterCopy {
  MatrixForm filter;
  Index outer = 0, depth = 0, batch = 0;
  RepackRecipe repack;  // bytes = 0: nothing to gain, or not possible
};
FilterCopy filter_copy(ConvolutionProblem const& problem);

// What a plan's product holds of the pass.
RepackRecipe const& filter_repack(GemmRecipe const& product);

// The problem that is left for the product.
ConvolutionProblem with_filter_copied(ConvolutionProblem problem, RepackRecipe const& repack);

}  // namespace cosmati::plan
