// Kernels by the type of the sums, and by which index of the result lies together.
#include "src/backend/emulator/catalogue/conv/sliding_convolution.h"

#include <algorithm>

#include "cosmati/conv/depthwise.h"
#include "cosmati/conv/direct_tiled.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {
namespace {

using HostDepthwise =
    DepthwiseParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;
using HostTiled =
    DirectTiledParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;
template <class Parameters>
using HostPlaces = PlacesInTurn<Parameters, most_places_in_turn>;

template <class Sum, bool channels_last, int vector, int taps, int tap_step, bool uneven>
void launch_depthwise(Grid grid, int shared_bytes, HostPlaces<HostDepthwise> const& places,
                      int host_threads) {
  using Traits = DepthwiseTraits<Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination,
                                 channels_last, vector, taps, 1, tap_step, uneven>;
  launch_kernel<&depthwise_of_places_kernel<Traits, most_places_in_turn>>(
      grid, Traits::threads, static_cast<unsigned>(shared_bytes), places, host_threads);
}

template <class Sum>
auto depthwise_of(SlidingRecipe const& recipe) {
  if constexpr (is_same<Sum, f32>) {
    if (recipe.uneven)
      return recipe.vector == 4     ? &launch_depthwise<f32, true, 4, 2, -1, true>
             : recipe.channels_last ? &launch_depthwise<f32, true, 1, 2, -1, true>
                                    : &launch_depthwise<f32, false, 1, 2, -1, true>;
    if (recipe.taps == 3 && recipe.vector == 4) return &launch_depthwise<f32, true, 4, 3, 1, false>;
    if (recipe.taps == 3 && !recipe.channels_last) return &launch_depthwise<f32, false, 1, 3, 1, false>;
  }
  return recipe.channels_last ? &launch_depthwise<Sum, true, 1, 0, 1, false>
                              : &launch_depthwise<Sum, false, 1, 0, 1, false>;
}

template <class Sum, bool swapped, int taps, int output_step, int tap_step, bool uneven>
void launch_tiles_with(Grid grid, int shared_bytes, HostPlaces<HostTiled> const& places, int host_threads) {
  using Traits = DirectTiledTraits<plan::emulated_direct_tile, plan::emulated_direct_threads, Sum, Sum, Sum,
                                   ConvolutionHostEpilogue, ConvolutionHostDestination, swapped, taps,
                                   output_step, tap_step, uneven>;
  launch_kernel<&direct_tiled_of_places_kernel<Traits, most_places_in_turn>>(
      grid, Traits::threads, static_cast<unsigned>(shared_bytes), places, host_threads);
}

template <class Sum, bool swapped>
auto tiles_of(SlidingRecipe const& recipe) {
  if constexpr (is_same<Sum, f32>) {
    if (recipe.uneven) return &launch_tiles_with<f32, swapped, 2, 1, -1, true>;
    if (recipe.taps > 0)
      return recipe.output_step == 1 ? &launch_tiles_with<f32, swapped, 3, 1, 1, false>
                                     : &launch_tiles_with<f32, swapped, 3, 2, 1, false>;
  }
  return &launch_tiles_with<Sum, swapped, 0, 1, 1, false>;
}

// Of each place, then the grid.
template <class Parameters, class Schedule>
Grid fill(HostPlaces<Parameters>& places, std::vector<plan::SlidingForm> const& launch,
          ConvolutionRecipe const& recipe, Schedule const& schedule,
          reference::ElementEpilogue const& expression, void const* image, void const* filter, void* result) {
  int count = 0;
  for (plan::SlidingForm const& sliding : launch)
    places.place[count++].params = {plan::sliding_arguments(sliding, image, filter),
                                    {plan::digit_arguments(sliding.form.d, result), sliding.form.d.type},
                                    {&expression, &sliding.form},
                                    schedule(sliding, recipe.sliding)};
  Index const blocks = take_turns(places, plan::blocks_along_x(launch, recipe).data(), count);
  return {static_cast<int>(blocks), 1, 1};
}

}  // namespace

void launch_sliding(std::vector<plan::SlidingForm> const& from, ConvolutionRecipe const& recipe,
                    DataType type, reference::ElementEpilogue const& expression, void const* image,
                    void const* filter, void* result, int host_threads) {
  std::vector<plan::SlidingForm> launch = from;
  for (plan::SlidingForm& sliding : launch) sliding.form.a.type = sliding.form.b.type = type;
  plan::ConvolutionForm const& form = launch.front().form;
  if (form.rows() == 0 || form.columns() == 0) return;
  SlidingRecipe const& own = recipe.sliding;
  auto const by_type = [&](auto const& use) {
    type == DataType::f64 ? use(f64{}) : type == DataType::s32 ? use(s32{}) : use(f32{});
  };
  if (recipe.algorithm == ConvolutionAlgorithm::depthwise) {
    HostPlaces<HostDepthwise> places;
    Grid const grid =
        fill(places, launch, recipe, plan::depthwise_schedule, expression, image, filter, result);
    by_type([&]<class Sum>(Sum) { depthwise_of<Sum>(own)(grid, own.shared_bytes, places, host_threads); });
    return;
  }
  HostPlaces<HostTiled> places;
  Grid grid = fill(places, launch, recipe, plan::tile_schedule, expression, image, filter, result);
  grid.y = static_cast<int>(plan::tile_grid(launch.front(), own).y);
  constexpr Index most_groups = 65535;
  for (Index at = 0; at < form.groups; at += most_groups) {
    for (std::size_t i = 0; i < launch.size(); ++i) places.place[i].params.schedule.first_group = at;
    grid.z = static_cast<int>(std::min(most_groups, form.groups - at));
    by_type([&]<class Sum>(Sum) {
      auto* const run = form.swapped ? tiles_of<Sum, true>(own) : tiles_of<Sum, false>(own);
      run(grid, own.shared_bytes, places, host_threads);
    });
  }
}

}  // namespace cosmati::emulator
