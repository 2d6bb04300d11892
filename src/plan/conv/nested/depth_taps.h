// Convolutions of volumes, (N, C, D, H, W), as convolutions of their planes: one for each tap along the
// depth, added in f32 (f64, s32). Any kernel of the backend computes them.
#pragma once
#include <optional>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"

namespace cosmati::plan {

// On all backends; computes the bias gradient as well.
Candidate<ConvolutionProblem> depth_taps_candidate();

// The plan of the convolution of planes with the most products; none for bias gradients and empty results.
std::optional<Plan<ConvolutionProblem>> plan_of_planes(Plan<ConvolutionProblem> const& plan);
// The plan of the bias gradient, alone or with that of the filter.
Plan<ReduceProblem> plan_of_bias(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
