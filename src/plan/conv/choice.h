// The algorithms of a convolution on GPUs and in the emulator.
#pragma once
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

std::vector<Candidate<ConvolutionProblem>> convolution_candidates(Backend backend);

// The products that the plan's kernel computes, one launch each, all of them by the same kernel.
std::vector<ConvolutionForm> planned_forms(ConvolutionProblem const& problem,
                                           ConvolutionRecipe const& recipe);

// The product's extents and types as the planner of matrix products sees them.
CanonicalGemm gemm_view(ConvolutionForm const& form);

}  // namespace cosmati::plan
