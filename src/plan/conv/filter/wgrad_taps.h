// The filter gradient that multiplies one copy of x for all taps: its form, shapes and program.
#pragma once
#include <array>
#include <string>

#include "cosmati/conv/wgrad_taps_arguments.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> wgrad_taps(ConvolutionProblem const& problem, Device const& device,
                                     PlanOptions const& options);

program::Program wgrad_taps_program(Plan<ConvolutionProblem> const& plan);

// Rows of dy are padded with zeros if their length is not a multiple of 8. A zero must pair with a zero of x,
// since infinity times zero is not zero. So for the first `taps` columns of taps, the zeros before the row
// are read instead of those after it.
struct LeadingPadding {
  bool possible = true;
  int zeros = 0, taps = 0;
};
LeadingPadding leading_padding(ConvolutionProblem const& problem, WgradTapsShape const& shape);

// The part of the launch's parameters that needs no pointers.
WgradTapsParameters wgrad_taps_parameters(ConvolutionProblem const& problem, WgradTapsShape const& shape,
                                          int parts);
inline Index wgrad_taps_tiles(WgradTapsParameters const& parameters) { return parameters.tile_count.divisor; }
// The partial sums of one part, in elements.
Index wgrad_taps_sums(WgradTapsParameters const& parameters, WgradTapsShape const& shape);

struct WgradTapsTraits {
  DataType type = DataType::f16;
  WgradTapsShape shape;
  std::string print() const;
};
struct WgradTapsSumTraits {
  WgradTapsSumPolicy policy;
  std::string epilogue, destination;
  std::string print() const;
};

// The shapes of the emulator's catalogue, for f16.
inline constexpr std::array<WgradTapsShape, 7> emulated_wgrad_taps_shapes{{
    {{3, 1, 1}, {3, 1, 1}, 16, 3, 1, 2},
    {{3, 1, 1}, {3, 1, 1}, 8, 2, 1, 3},
    {{3, 1, 1}, {3, 1, 1}, 8, 4, 1, 2, true},
    {{3, 1, 1}, {3, 1, 1}, 8, 1, 2, 2},
    {{3, 2, 1}, {3, 2, 1}, 8, 2, 1, 2},
    {{3, 2, 1}, {3, 2, 1}, 8, 1, 2, 2},
    {{2, 1, 2}, {2, 1, 2}, 16, 2, 1, 2},
}};
inline constexpr int emulated_wgrad_taps_slices = 4;

}  // namespace cosmati::plan
