// Depthwise convolutions by threads that walk down the image: supported problems, the results of a thread,
// and programs.
#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include "cosmati/conv/depthwise/depthwise_rows_arguments.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> depthwise_rows(ConvolutionProblem const& problem, Device const& device,
                                         PlanOptions const& options);
// The offer for a filter gradient; the problem must have been checked.
Offer<ConvolutionProblem> depthwise_rows_filter(ConvolutionProblem const& problem, Device const& device);

program::Program depthwise_rows_program(Plan<ConvolutionProblem> const& plan);
program::Program depthwise_rows_filter_program(Plan<ConvolutionProblem> const& plan);

struct DepthwiseRowsTraits {
  KernelTypes types;
  DepthwiseRowsShape shape;
  std::string print() const;
};
struct DepthwiseRowsFilterTraits {
  KernelTypes types;
  DepthwiseRowsShape shape;
  bool ragged = false;
  std::string print() const;
};

// The refusal if the emulator has no suitable shape.
inline constexpr char const* no_emulated_shape = "the emulator has no kernel with these taps and strides";
// The shapes in the emulator's catalogue, which also contains each with vectors of one channel, with packed
// filters if channels are last, and, if they are last and not dilated, for one group of rows.
inline constexpr DepthwiseRowsShape emulated_rows_shapes[] = {
    {false, true, false, 4, 4, 3, 3, 1, 1, false, true},
    {false, true, false, 4, 4, 3, 3, 2, 2, true, false},
    {false, true, false, 4, 4, 3, 2, 2, 1},
    {false, true, false, 1, 2, 5, 5, 1, 1},
    {false, false, false, 1, 2, 3, 3, 1, 1, true, true},
    {false, false, false, 1, 2, 3, 3, 2, 2},
    {false, true, false, 4, 2, 3, 3, 1, 1, false, true, 1, true},
    {false, false, false, 1, 2, 3, 3, 1, 1, true, true, 1, true}};

// The dilation along rows (axis 0) or columns; 1 if there is only one tap. Each phase modulo the dilations is
// a convolution without dilation.
Index dilation_of(ConvolutionProblem const& problem, int axis);
Index dilation_phases(ConvolutionProblem const& problem);
std::string phases_text(ConvolutionProblem const& problem);

// Replaces tf32 by f32: the inputs are stored as f32, and sums are in f32 anyway.
KernelTypes as_f32(KernelTypes types);

// "DepthwiseRowsShape{false, true, ...}"
std::string shape_text(DepthwiseRowsShape const& shape);

// Returns the shape measured to be the fastest for these taps, strides and columns of results, or the one
// that the emulator has, if any. `max_vector`: the largest vector of channels; 1 unless they are contiguous.
std::optional<DepthwiseRowsShape> rows_shape(ConvolutionProblem const& problem, bool channels_last,
                                             int max_vector, bool emulated);
// Whether a thread with so many groups of rows computes them alone; `may_be_short`: parts may be.
constexpr bool is_alone(DepthwiseRowsShape const& shape, Index groups_of_part, bool may_be_short) {
  return groups_of_part == 1 && may_be_short && !shape.dilated;
}
constexpr void compute_alone(DepthwiseRowsShape& shape) {
  constexpr int resident = 2;  // blocks, which leaves registers for all rows
  shape.alone = true;
  shape.ahead = shape.unrolled = false;
  shape.blocks = std::min(shape.blocks, resident);
}
// Predicted seconds without the launches, from the memory traffic and the multiply-adds, which partly
// overlap; within a quarter of the times of an H100 between 7 and 190 us.
double rows_seconds(ConvolutionProblem const& problem, Gpu const& gpu);
// The largest vector of contiguous channels, a power of two in 16 bytes, that all pixels of the tensor allow.
int channel_vector(TensorDescription const& images);
// Whether adjacent threads process adjacent channels.
bool walks_channels(TensorDescription const& image, TensorDescription const& result);

}  // namespace cosmati::plan
