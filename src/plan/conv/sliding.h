// A convolution as windows that slide over an image: forms for the kernels direct_tiled and depthwise.
#pragma once
#include <vector>

#include "cosmati/conv/sliding.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"

namespace cosmati::plan {

// The pointers of `window` are null; bases are added to the tensors', in elements.
struct SlidingForm {
  ConvolutionForm form;  // of depthwise: with all channels
  SlidingArguments window;
  Index image_base = 0, filter_base = 0;
  std::size_t result_bytes() const;
  double products() const;
};

// One form, or one for each place between the strides of a data gradient.
std::vector<SlidingForm> sliding_forms(ConvolutionProblem const& problem, ConvolutionAlgorithm algorithm);

// With the pointers of a launch.
SlidingArguments sliding_arguments(SlidingForm const& sliding, void const* image, void const* filter);

Offer<ConvolutionProblem> direct_tiled(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options);
Offer<ConvolutionProblem> depthwise(ConvolutionProblem const& problem, Device const& device,
                                    PlanOptions const& options);

// A digit of an index by its letter: how an operand is walked along it, and what one more of it adds.
struct FoundDigit {
  Index extent = 1;
  DigitStep step;
  Index number = 0;
};
FoundDigit find_digit(char letter, ProductIndex const& index, DigitSteps const& steps);
// `output` and `tap` of the image, `weight` of the filter; their `step` is along the axis.
WindowAxis window_axis(FoundDigit const& output, FoundDigit const& tap, FoundDigit const& weight,
                       int DigitStep::*step, int origin, int size);

// The power of two in 2^least..2^most of which whole tiles waste least.
int lanes_shift_of(Index extent, int least, int most);

struct SlidingGrid {
  Index x = 0, y = 1, z = 1;
};
DirectTileSchedule tile_schedule(SlidingForm const& sliding, SlidingRecipe const& recipe);
SlidingGrid tile_grid(SlidingForm const& sliding, SlidingRecipe const& recipe);
// No accesses of the result and its operands wider than what divides a thread's run of filters.
void narrow_runs(ConvolutionForm& form, int filters);
int tile_threads(SlidingRecipe const& recipe);                    // of a block of direct_tiled
inline constexpr DirectTile emulated_direct_tile{8, 8, 4, 4, 2};  // the catalogue's, and its block
inline constexpr int emulated_direct_threads = 64;
DepthwiseSchedule depthwise_schedule(SlidingForm const& sliding, SlidingRecipe const& recipe);
SlidingGrid depthwise_grid(SlidingForm const& sliding, SlidingRecipe const& recipe);

}  // namespace cosmati::plan
