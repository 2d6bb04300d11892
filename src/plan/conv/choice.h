// The algorithms of a convolution on GPUs and in the emulator.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

std::vector<Candidate<ConvolutionProblem>> convolution_candidates(Backend backend);

// The products that the plan's kernel computes, one launch each, all of them by the same kernel.
std::vector<ConvolutionForm> planned_forms(ConvolutionProblem const& problem,
                                           ConvolutionRecipe const& recipe);

// All forms of a problem run by one kernel: with the widths and the direction that each of them has.
void unify(std::vector<ConvolutionForm>& forms);

// Why no algorithm here takes the problem, or the forms; empty: one may.
std::string problem_violation(ConvolutionProblem const& problem, Backend backend);
std::string extent_violation(std::vector<ConvolutionForm> const& forms);

// The largest of the even slices of [0, extent) that fits; 1 if none does. What fits a slice fits a smaller
// one.
template <class Fits>
Index largest_slice(Index extent, Fits const& fits) {
  Index fewest = 1, most = extent < 1 ? 1 : extent;
  while (fewest < most) {
    Index const slices = fewest + (most - fewest) / 2;
    if (fits((extent + slices - 1) / slices))
      most = slices;
    else
      fewest = slices + 1;
  }
  return (extent + fewest - 1) / fewest;
}

// The product's extents and types as the planner of matrix products sees them.
CanonicalGemm gemm_view(ConvolutionForm const& form);

}  // namespace cosmati::plan
