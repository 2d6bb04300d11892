// Convolutions with groups of few channels on tensor cores. The recipe has only the algorithm: the shape is a
// function of problem and device.
#pragma once
#include <algorithm>
#include <string>

#include "cosmati/conv/grouped/grouped_arguments.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/integers.h"

namespace cosmati::plan {

struct GroupedPlan {
  std::string refusal;  // not empty: why the kernel does not support the problem
  GroupedShape shape;
  Index parts = 1, tiles_down = 1, tiles_across = 1;
  Index tiles = 0, slots = 1;  // slots: blocks that share the tiles of a part
  Index blocks = 0;            // of the launch
  double seconds = 0;          // predicted
};
// The shape that is predicted to be fastest, for a forward convolution or a data gradient.
GroupedPlan grouped_plan(ConvolutionProblem const& problem, Device const& device);

// The problem as windows of `image` from which `result` is computed.
struct GroupedRoles {
  TensorDescription const &image, &result;
  Index groups, inputs, outputs;              // channels of a group
  Index filter_output = 0, filter_input = 0;  // elements between channels of the filter
};
GroupedRoles grouped_roles(ConvolutionProblem const& problem);

// Rows or columns of these windows; `masked`: some phases of a data gradient have fewer taps.
struct GroupedWindowAxis {
  GroupedAxis axis;
  GroupedPhases phases;
  bool masked = false;
};
GroupedWindowAxis grouped_axis(ConvolutionProblem const& problem, int i);

// Sets where the windows of output 0 begin, the extents of the result's planes, and the numbers of its
// pixels.
template <class Window>
void set_windows(Window& window, ConvolutionProblem const& problem, ConvolutionForm const& form) {
  TensorDescription const& result = grouped_roles(problem).result;
  window.top = grouped_axis(problem, 0).phases.phase[0].origin;
  window.left = grouped_axis(problem, 1).phases.phase[0].origin;
  window.outputs_down = to_int(result.extent(2)), window.outputs_across = to_int(result.extent(3));
  set_pixel_numbers(window, form);
}

// Why no grouped kernel, in any direction, supports the problem; empty if there is no reason. Only some take
// tf32.
std::string grouped_violation(ConvolutionProblem const& problem, Device const& device, bool takes_tf32);
// Returns the size of the copies that an image allows: 16 or 8 bytes, or 0 if neither.
int grouped_unit(TensorDescription const& image);

// Calls use(images, down, across) with the tiles of outputs that are worth trying: parts of a plane, or
// several whole ones.
template <class Use>
void for_each_grouped_tile(Index images, Index height, Index width, Use const& use) {
  constexpr Index max_pixels = 512, max_across = 128;
  auto const parts = [](Index extent, Index of) { return (extent + of - 1) / of; };
  for (Index of_row = 1; of_row <= width; ++of_row) {
    Index const across = parts(width, of_row);
    if (across > max_across) continue;
    for (Index of_column = 1; of_column <= height; ++of_column) {
      Index const down = parts(height, of_column);
      if (down * across > max_pixels) continue;
      bool const whole = of_row == 1 && of_column == 1;
      for (int const together : {1, 2, 3, 4, 6, 8}) {
        if (together > 1 && (!whole || together > images || together * down * across > max_pixels)) break;
        use(together, static_cast<int>(down), static_cast<int>(across));
      }
      if (down * across < 32 || down <= 2) break;
    }
    if (across < 8) break;
  }
}

// The number of pixels that a tile reads beyond those that its outputs span, relative to the latter.
template <class Shape>
double halo_share(Shape const& shape) {
  double const tile = static_cast<double>(shape.pixels()) * shape.rows.step * shape.columns.step;
  return std::max(0.0, shape.halo() / tile - 1);
}

std::string text_of(GroupedAxis const& axis);  // as C++

struct GroupedTraits {
  GroupedShape shape;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};
// The emulator's kernels, whose shape is in the arguments: one per number of fragments and size of elements.
constexpr GroupedShape emulated_grouped_shape(int fragments, int bytes) {
  GroupedShape shape;
  shape.bytes = bytes;
  shape.warps = unfixed_grouped_warps, shape.fragments = fragments;
  return shape;
}
program::Program grouped_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> grouped(ConvolutionProblem const& problem, Device const& device,
                                  PlanOptions const& options);

}  // namespace cosmati::plan
