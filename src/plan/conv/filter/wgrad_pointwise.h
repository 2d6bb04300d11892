// Filter gradients of filters of one tap, on tensor cores. The recipe has no fields of its own: the shape is
// a function of problem and device.
#pragma once
#include <string>

#include "cosmati/conv/pointwise/wgrad_pointwise_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct WgradPointwisePlan {
  std::string refusal;  // not empty: why the kernel does not support the problem
  WgradPointwiseShape shape;
  bool rows_are_filters = true;
  Index blocks = 0, row_bands = 1, column_bands = 1;                      // of the launch
  double seconds = 0;                                                     // predicted
  Index sums() const { return row_bands * column_bands * shape.sums(); }  // of one block in all bands
};
// The shape that is predicted to be fastest.
WgradPointwisePlan wgrad_pointwise_plan(ConvolutionProblem const& problem, Device const& device);

struct WgradPointwiseTraits {
  WgradPointwiseShape shape;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  bool swapped = false;
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};
// The emulator's kernels have their fragments, warps and stages from this shape, and the rest in the
// arguments.
constexpr WgradPointwiseShape emulated_wgrad_pointwise_shape() {
  WgradPointwiseShape shape;
  shape.column_fragments = 5;
  shape.warps_of_rows = 2, shape.warps_of_depth = 2;
  return shape;
}
program::Program wgrad_pointwise_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> wgrad_pointwise(ConvolutionProblem const& problem, Device const& device,
                                          PlanOptions const& options);

}  // namespace cosmati::plan
