// A convolution as windows that slide over an image: forms for the kernels direct_tiled and depthwise.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "cosmati/conv/phases_in_turn.h"
#include "cosmati/conv/sliding.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

// The pointers of `window` are null; bases are added to the tensors' pointers, in elements.
struct SlidingForm {
  ConvolutionForm form;  // for depthwise: with all channels
  SlidingArguments window;
  Index image_base = 0, filter_base = 0;
  std::size_t result_bytes() const;
  double products() const;
};

// One form, or one per phase of a strided data gradient.
std::vector<SlidingForm> sliding_forms(ConvolutionProblem const& problem, ConvolutionAlgorithm algorithm);

// The forms that each launch of direct_tiled or depthwise computes, those with the most taps first: one form,
// or all nonempty phases, as many as fit in the parameters of a launch. The first launch has the most.
using SlidingLaunches = std::vector<std::vector<SlidingForm>>;
SlidingLaunches sliding_launches(ConvolutionProblem const& problem, ConvolutionAlgorithm algorithm);
// Whether the kernel that interleaves phases computes them.
bool take_turns(SlidingLaunches const& launches);
// Returns text such as "1 launch for 4 phases"; `times` is the number of repetitions.
std::string launches_text(SlidingLaunches const& launches, Index times = 1);

// The largest size of a kernel's parameters for compute capability 7.0 and later.
inline constexpr std::size_t max_parameter_bytes = 32764;
// The largest number of phases per launch, with parameters `Params` each.
template <class Params>
constexpr int max_phases_of = static_cast<int>(
    std::min<std::size_t>(max_phases_in_turn, (max_parameter_bytes - sizeof(PhasesInTurn<Params, 1>)) /
                                                      sizeof(typename PhasesInTurn<Params, 1>::Phase) +
                                                  1));

// "3 taps in registers"
std::string taps_text(KnownAxis const& axis);

// The compile-time constants of an axis for a kernel that computes all forms; none if the forms that have
// taps differ by more than one tap.
KnownAxis known_axis(std::vector<SlidingForm> const& forms, WindowAxis SlidingArguments::*axis);

// The positions of the image from the first to the last that the windows of adjacent outputs have.
inline Index halo(WindowAxis const& axis, Index outputs) {
  return (outputs - 1) * std::abs(axis.output_step) +
         std::max(0, axis.taps - 1) * Index{std::abs(axis.tap_step)} + 1;
}
inline bool reaches_outside(WindowAxis const& axis) {
  // Like DirectTiled::origin, for the first output.
  Index const first = axis.origin + (axis.tap_step < 0 ? Index{axis.taps - 1} * axis.tap_step : 0);
  return first < 0 || first + halo(axis, axis.outputs) > axis.size;
}

// Adds the pointers of a launch.
SlidingArguments sliding_arguments(SlidingForm const& sliding, void const* image, void const* filter);

Offer<ConvolutionProblem> direct_tiled(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options);
Offer<ConvolutionProblem> depthwise(ConvolutionProblem const& problem, Device const& device,
                                    PlanOptions const& options);

// A digit of an index by its letter: the steps of an operand along it, and the increment of the index.
struct FoundDigit {
  Index extent = 1;
  IndexStride step;
  Index number = 0;
};
FoundDigit find_digit(char letter, ProductIndex const& index, IndexStrides const& steps);

// Sets the increments of the pixel's index, m or n, per image, row and column.
template <class Window>
void set_pixel_numbers(Window& window, ConvolutionForm const& form) {
  auto const number = [&](char letter) {
    return static_cast<int>(find_digit(letter, form.image_outer(), form.image().arguments.outer).number);
  };
  window.number_image = number('n'), window.number_row = number('p'), window.number_column = number('q');
}
// `output` and `tap` are digits of the image, `weight` is a digit of the filter; their `step` is along the
// axis.
WindowAxis window_axis(FoundDigit const& output, FoundDigit const& tap, FoundDigit const& weight,
                       int IndexStride::*step, int origin, int size);

// The traits of the kernels, as C++.
std::string traits_of(DepthwisePolicy const& policy, KernelTypes const& types);
std::string traits_of(DirectTiledPolicy const& policy, KernelTypes const& types);
std::string initializer(KnownAxis const& axis);
// The program of direct_tiled and depthwise, except for filter gradients.
program::Program sliding_program(Plan<ConvolutionProblem> const& plan);

// Returns the logarithm, from `minimum` to `maximum`, of the power of two whose tiles waste the least.
int log2_lanes_of(Index extent, int minimum, int maximum);

struct SlidingGrid {
  Index x = 0, y = 1, z = 1;
};
// Returns the blocks of each phase of a launch along the grid's x.
std::vector<Index> blocks_along_x(std::vector<SlidingForm> const& launch, ConvolutionRecipe const& recipe);
DirectTileSchedule tile_schedule(SlidingForm const& sliding, DirectTiledRecipe const& recipe);
SlidingGrid tile_grid(SlidingForm const& sliding, DirectTiledRecipe const& recipe);
// Limits the accesses of the result and its operands to widths that divide a thread's run of filters.
void narrow_runs(ConvolutionForm& form, int filters);
int tile_threads(DirectTiledRecipe const& recipe);                // per block of direct_tiled
inline constexpr DirectTile emulated_direct_tile{8, 8, 4, 4, 2};  // tile of the catalogue's kernel, and
                                                                  // threads per block
inline constexpr int emulated_direct_threads = 64;
DepthwiseSchedule depthwise_schedule(SlidingForm const& sliding, DepthwiseRecipe const& recipe);
SlidingGrid depthwise_grid(SlidingForm const& sliding, DepthwiseRecipe const& recipe);

}  // namespace cosmati::plan
