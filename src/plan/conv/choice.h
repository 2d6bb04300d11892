// The algorithms of a convolution on GPUs and in the emulator.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

std::vector<Candidate<ConvolutionProblem>> convolution_candidates(Backend backend);

// The products that the plan's kernel computes, one launch each.
std::vector<ConvolutionForm> planned_forms(ConvolutionProblem const& problem,
                                           ConvolutionRecipe const& recipe);

// Makes all forms of a problem suitable for one kernel, with the widths and the major that all of them
// support.
void unify(std::vector<ConvolutionForm>& forms);

// The reason why no algorithm accepts the problem or the forms; empty if one may.
std::string problem_violation(ConvolutionProblem const& problem, Backend backend);
std::string extent_violation(std::vector<ConvolutionForm> const& forms);

// Returns the number of blocks with these threads, registers per thread and bytes of shared memory that are
// resident on a multiprocessor, at most 8; 0 if a block does not fit.
int resident_blocks(Gpu const& gpu, int threads, int registers, int shared_bytes);

// Divides [0, extent) into equal slices; returns the size of the largest that fits, 1 if none does. `fits`
// must be monotonic.
template <class Fits>
Index largest_slice(Index extent, Fits const& fits) {
  Index fewest = 1, maximum = extent < 1 ? 1 : extent;
  while (fewest < maximum) {
    Index const slices = fewest + (maximum - fewest) / 2;
    if (fits((extent + slices - 1) / slices))
      maximum = slices;
    else
      fewest = slices + 1;
  }
  return (extent + fewest - 1) / fewest;
}

// Returns the product's extents and types for the planner of matrix products.
CanonicalGemm gemm_view(ConvolutionForm const& form);

}  // namespace cosmati::plan
