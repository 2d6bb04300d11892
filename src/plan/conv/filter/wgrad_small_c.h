// Filter gradients with few input channels or, at stride 1, few filters, on tensor cores. The recipe has no
// fields of its own: the shape is a function of problem and device.
#pragma once
#include <string>

#include "cosmati/conv/small_c/wgrad_small_c_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

// Whether x and dy are exchanged, because dy has much fewer channels; the kernel then cannot sum dy for the
// bias gradient.
bool exchanges_images(ConvolutionProblem const& problem);

struct WgradSmallCPlan {
  std::string refusal;  // not empty: why the kernel does not support the problem
  WgradSmallCShape shape;
  Index blocks = 0, bands = 1, tap_bands = 1;  // of the launch
  double seconds = 0;                          // predicted
  // The sums of one block in all bands.
  Index sums(int column_tiles) const { return bands * tap_bands * shape.filters() * (column_tiles + 1) * 8; }
};
// The shape that is predicted to be fastest.
WgradSmallCPlan wgrad_small_c_plan(ConvolutionProblem const& problem, Device const& device);

struct WgradSmallCTraits {
  WgradSmallCShape shape;
  int column_tiles = 0;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  bool swapped = false;
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};
// The emulator's kernels, whose shapes are in the arguments.
constexpr WgradSmallCShape emulated_wgrad_small_c_shape(int place, bool async) {
  WgradSmallCShape shape;
  shape.tile.warps = unfixed_fprop_warps, shape.tile.place = place;
  shape.tile.async = async;
  return shape;
}
program::Program wgrad_small_c_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> wgrad_small_c(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

}  // namespace cosmati::plan
