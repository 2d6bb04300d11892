// Data gradients with few channels on tensor cores. The recipe has only the marker uses_cells(): the shape is
// a function of problem and device.
#pragma once
#include "cosmati/conv/cell_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

// Whether a plan of dgrad_small_c runs on tensor cores.
bool uses_cells(ConvolutionRecipe const& recipe);

struct CellPlan {
  std::string refusal;  // not empty: why the kernel does not support the problem
  CellShape shape;
  int chunks = 1, shared_bytes = 0;
  Index tiles = 0, blocks = 0;  // of the launch
  double seconds = 0;           // predicted
};
// The shape that is predicted to be fastest.
CellPlan cell_plan(ConvolutionProblem const& problem, Device const& device);

struct DgradSmallCMmaTraits {
  CellShape shape;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};
// The emulator's kernel, whose shape is in the arguments.
constexpr CellShape emulated_cell_shape() {
  CellShape shape;
  shape.warps = unfixed_cell_warps;
  return shape;
}
program::Program cell_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> dgrad_small_c_mma(ConvolutionProblem const& problem, Device const& device,
                                            PlanOptions const& options);

}  // namespace cosmati::plan
