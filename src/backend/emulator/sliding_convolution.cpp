// Kernels by the type of the sums, and by which index of the result lies together.
#include "src/backend/emulator/sliding_convolution.h"

#include <algorithm>

#include "cosmati/conv/depthwise.h"
#include "cosmati/conv/direct_tiled.h"
#include "src/backend/emulator/convolution_catalogue.h"

namespace cosmati::emulator {
namespace {

using HostDepthwise =
    DepthwiseParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;
using HostTiled =
    DirectTiledParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;

template <class Sum, bool channels_last, int vector, int taps>
void launch_depthwise(Grid grid, int shared_bytes, HostDepthwise const& parameters, int host_threads) {
  using Traits = DepthwiseTraits<Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination,
                                 channels_last, vector, taps>;
  launch_kernel<&depthwise_kernel<Traits>>(grid, Traits::threads, static_cast<unsigned>(shared_bytes),
                                           parameters, host_threads);
}

template <class Sum>
auto depthwise_of(SlidingRecipe const& recipe) {
  if constexpr (is_same<Sum, f32>) {
    if (recipe.taps == 3 && recipe.vector == 4) return &launch_depthwise<f32, true, 4, 3>;
    if (recipe.taps == 3 && !recipe.channels_last) return &launch_depthwise<f32, false, 1, 3>;
  }
  return recipe.channels_last ? &launch_depthwise<Sum, true, 1, 0> : &launch_depthwise<Sum, false, 1, 0>;
}

template <class Sum, bool swapped, int taps, int output_step>
void launch_tiles_with(Grid grid, int shared_bytes, HostTiled const& parameters, int host_threads) {
  using Traits =
      DirectTiledTraits<plan::emulated_direct_tile, plan::emulated_direct_threads, Sum, Sum, Sum,
                        ConvolutionHostEpilogue, ConvolutionHostDestination, swapped, taps, output_step>;
  launch_kernel<&direct_tiled_kernel<Traits>>(grid, Traits::threads, static_cast<unsigned>(shared_bytes),
                                              parameters, host_threads);
}

template <class Sum, bool swapped>
auto tiles_of(SlidingRecipe const& recipe) {
  if constexpr (is_same<Sum, f32>)
    if (recipe.taps > 0)
      return recipe.output_step == 1 ? &launch_tiles_with<f32, swapped, 3, 1>
                                     : &launch_tiles_with<f32, swapped, 3, 2>;
  return &launch_tiles_with<Sum, swapped, 0, 1>;
}

template <class Sum>
void launch_tiles(Grid grid, SlidingRecipe const& recipe, HostTiled const& parameters, bool swapped,
                  int host_threads) {
  auto* const launch = swapped ? tiles_of<Sum, true>(recipe) : tiles_of<Sum, false>(recipe);
  launch(grid, recipe.shared_bytes, parameters, host_threads);
}

Grid as_grid(plan::SlidingGrid const& grid) {
  return {static_cast<int>(grid.x), static_cast<int>(grid.y), static_cast<int>(grid.z)};
}

}  // namespace

void launch_sliding(plan::SlidingForm const& from, ConvolutionRecipe const& recipe, DataType type,
                    reference::ElementEpilogue const& expression, plan::ConvolutionPointers const& pointers,
                    int host_threads) {
  plan::SlidingForm sliding = from;
  plan::ConvolutionForm& form = sliding.form;
  form.a.type = form.b.type = type;
  bool const first = form.image_is_a;
  SlidingArguments const window =
      plan::sliding_arguments(sliding, first ? pointers.a : pointers.b, first ? pointers.b : pointers.a);
  ConvolutionHostDestination::Arguments const d{plan::digit_arguments(form.d, pointers.d), form.d.type};
  ConvolutionHostEpilogue::Arguments const epilogue{&expression, &form};
  SlidingRecipe const& own = recipe.sliding;
  if (recipe.algorithm == ConvolutionAlgorithm::depthwise) {
    HostDepthwise const parameters{window, d, epilogue, plan::depthwise_schedule(sliding, own)};
    auto* const launch = type == DataType::f64   ? depthwise_of<f64>(own)
                         : type == DataType::s32 ? depthwise_of<s32>(own)
                                                 : depthwise_of<f32>(own);
    launch(as_grid(plan::depthwise_grid(sliding, own)), own.shared_bytes, parameters, host_threads);
    return;
  }
  HostTiled parameters{window, d, epilogue, plan::tile_schedule(sliding, own)};
  auto* const launch = type == DataType::f64   ? &launch_tiles<f64>
                       : type == DataType::s32 ? &launch_tiles<s32>
                                               : &launch_tiles<f32>;
  plan::SlidingGrid grid = plan::tile_grid(sliding, own);
  constexpr Index most_groups = 65535;
  for (Index at = 0; at < form.groups; at += most_groups) {
    parameters.schedule.first_group = at;
    grid.z = std::min(most_groups, form.groups - at);
    launch(as_grid(grid), own, parameters, form.swapped, host_threads);
  }
}

}  // namespace cosmati::emulator
