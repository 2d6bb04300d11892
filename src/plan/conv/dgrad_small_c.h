// Data gradients with few channels, computing all phases at once.
#pragma once
#include "cosmati/conv/merged_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct MergedForm {
  ConvolutionForm form;    // m or n: all pixels of dx
  MergedArguments window;  // without pointers and group; `shape` is the recipe's
};
MergedForm merged_form(ConvolutionProblem const& problem, MergedShape const& shape);

struct MergedGrid {
  Index x = 0, y = 1, z = 1;
};
MergedGrid merged_grid(ConvolutionProblem const& problem, MergedShape const& shape);

struct DgradSmallCTraits {
  MergedShape shape;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  KernelTypes types;
  std::string print() const;
};
// The emulator's kernel, whose shape is in the arguments.
constexpr MergedShape emulated_merged_shape() {
  MergedShape shape;
  shape.threads_down = unfixed_merged_threads, shape.threads_across = 1;
  return shape;
}
program::Program merged_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> dgrad_small_c(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

}  // namespace cosmati::plan
