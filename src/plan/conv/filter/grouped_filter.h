// Filter gradients with groups of few channels on tensor cores. As for the other directions
// (conv/grouped/grouped.h), the shape is a function of problem and device.
#pragma once
#include "cosmati/conv/grouped/grouped_filter_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct GroupedFilterPlan {
  std::string refusal;  // not empty: why the kernel does not support the problem
  GroupedFilterShape shape;
  Index group_parts = 1, tiles_down = 1, tiles_across = 1, tiles = 1, parts = 1;
  Index weights = 0;
  Index sums() const { return parts * shape.share(); }
  std::size_t bytes() const { return static_cast<std::size_t>(sums() * weights) * sizeof(float); }
  double seconds = 0;  // predicted
};
// The shape that is predicted to be fastest.
GroupedFilterPlan grouped_filter_plan(ConvolutionProblem const& problem, Device const& device);

struct GroupedFilterTraits {
  GroupedFilterShape shape;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};
// The emulator's kernels, whose shape is in the arguments: one per number of fragments and size of elements.
constexpr GroupedFilterShape emulated_grouped_filter_shape(int fragments, int bytes) {
  GroupedFilterShape shape;
  shape.fragments = fragments, shape.bytes = bytes;
  return shape;
}
program::Program grouped_filter_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> grouped_filter(ConvolutionProblem const& problem, Device const& device);

}  // namespace cosmati::plan
