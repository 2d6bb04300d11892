// A convolution of volumes as convolutions of planes: which planes, with which tap along the depth, and where
// their sums are stored.
#pragma once
#include <optional>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"

namespace cosmati::plan {

// A tensor of planes, or of a filter's tap: the offset of the first batch, and the distance to the next, in
// bytes.
struct PlaneView {
  TensorDescription tensor;
  Index base = 0, next = 0;
};

// The tap `tap` along the depth of a filter.
PlaneView tap_of(TensorDescription const& filter, Index tap);

// A convolution of planes, run once for each batch.
struct PlanePart {
  ConvolutionProblem problem;
  PlaneView x, w, y;
  Index batches = 1;
  Index tap = 0;
  bool adds = false;  // accumulates into the result
};

// The contents of a plan, except the plans of its parts.
struct PlaneDivision {
  std::vector<PlanePart> parts;
  std::vector<Index> first_of;                 // filter gradient: first batch of each tap; at the end, the
                                               // number of batches
  TensorDescription sums;                      // in the workspace, after the memory of the parts; may be
                                               // absent
  std::optional<ElementwiseProblem> epilogue;  // computes the result from the sums
  std::size_t sum_bytes() const;               // of `sums`, padded
};

// Empty for a bias gradient and for empty results.
PlaneDivision division_of(ConvolutionProblem const& problem, bool batch_invariant);

// dw[:, :, part.tap] as a sum of partial gradients, and db.
ReduceProblem sum_of_tap(ConvolutionProblem const& problem, PlanePart const& part);
ReduceProblem sum_for_bias(ConvolutionProblem const& problem);

}  // namespace cosmati::plan
