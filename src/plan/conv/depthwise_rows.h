// Depthwise convolutions by threads that walk down the image: which problems, what a thread has, and
// programs.
#pragma once
#include <optional>
#include <string>

#include "cosmati/conv/depthwise_rows_arguments.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> depthwise_rows(ConvolutionProblem const& problem, Device const& device,
                                         PlanOptions const& options);
// For filter gradients; the problem has been checked.
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

// The refusal if the emulator has no shape.
inline constexpr char const* no_emulated_shape = "the emulator has no kernel with these taps and strides";
// The shapes that the emulator's catalogue contains, besides their vectors of one channel.
inline constexpr DepthwiseRowsShape emulated_rows_shapes[] = {
    {false, true, false, 4, 4, 3, 3, 1, 1, false, true},
    {false, true, false, 4, 4, 3, 3, 2, 2, true, false},
    {false, true, false, 4, 4, 3, 2, 2, 1},
    {false, true, false, 1, 2, 5, 5, 1, 1},
    {false, false, false, 1, 2, 3, 3, 1, 1, true, true},
    {false, false, false, 1, 2, 3, 3, 2, 2}};

// "DepthwiseRowsShape{false, true, ...}"
std::string shape_text(DepthwiseRowsShape const& shape);

// Returns what a thread has: as measured to be the fastest for these taps, strides and columns of results, or
// the shape that the emulator has, if any. `max_vector`: of contiguous channels, 1 unless they are
// contiguous.
std::optional<DepthwiseRowsShape> rows_shape(ConvolutionProblem const& problem, bool channels_last,
                                             int max_vector, bool emulated);
// Returns the parts of `rows` rows, each of at least `least`, for which `threads` of a part are enough for a
// GPU.
Index rows_of_part(Index rows, Index least, Index threads, DepthwiseRowsShape const& shape, Gpu const& gpu);
// Predicted seconds without the launches, from those of the memory traffic and of the multiply-adds, which
// overlap in part: within a quarter of what an H100 takes for 7 to 190 us.
double rows_seconds(ConvolutionProblem const& problem, Gpu const& gpu);
// The largest vector of contiguous channels, a power of two in 16 bytes, that all pixels of the tensor allow.
int channel_vector(TensorDescription const& images);
// Whether adjacent threads lie along the channels.
bool walks_channels(TensorDescription const& image, TensorDescription const& result);

}  // namespace cosmati::plan
