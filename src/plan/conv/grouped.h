// Convolutions with groups of few channels on tensor cores. The recipe has only the algorithm: the shape is a
// function of problem and device.
#pragma once
#include "cosmati/conv/grouped/grouped_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct GroupedPlan {
  std::string refusal;  // not empty: why the kernel does not support the problem
  GroupedShape shape;
  Index parts = 1, tiles_down = 1, tiles_across = 1, image_tiles = 1;
  Index tiles = 0, slots = 1;  // slots: blocks that share the tiles of a part
  Index blocks = 0;            // of the launch
  double seconds = 0;          // predicted
};
// The shape that is predicted to be fastest, for a forward convolution or a data gradient.
GroupedPlan grouped_plan(ConvolutionProblem const& problem, Device const& device);

// Why no grouped kernel, in any direction, supports the problem; empty if there is no reason.
std::string grouped_violation(ConvolutionProblem const& problem, Device const& device);
// Returns the bytes that copies of an image may have: 16, 8 or none.
int grouped_unit(TensorDescription const& image);

struct GroupedTraits {
  GroupedShape shape;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};
// The emulator's kernels, whose shape is in the arguments: one per number of fragments.
constexpr GroupedShape emulated_grouped_shape(int fragments) {
  GroupedShape shape;
  shape.warps = unfixed_grouped_warps, shape.fragments = fragments;
  return shape;
}
program::Program grouped_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> grouped(ConvolutionProblem const& problem, Device const& device,
                                  PlanOptions const& options);

}  // namespace cosmati::plan
