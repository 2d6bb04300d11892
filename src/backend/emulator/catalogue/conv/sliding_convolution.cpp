// The emulator's depthwise and tiled direct convolutions, by accumulator type and by the contiguous index of
// the result.
#include "cosmati/conv/depthwise.h"
#include "cosmati/conv/direct_tiled.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::emulator {
namespace {

constexpr KnownAxis three_taps{.taps = 3};
constexpr KnownAxis phases{.taps = 2, .output_step = 1, .tap_step = -1, .uneven = true};

template <class Sum, DepthwisePolicy policy>
void add_depthwise(KernelTable& table) {
  using Traits = DepthwiseTraits<policy, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_kernel<&depthwise_of_phases_kernel<Traits, max_phases_in_turn>,
             PhasesInTurn<typename Traits::Params, max_phases_in_turn>>(
      table, "depthwise_of_phases_kernel", plan::traits_of(policy, plan::emulated_types(type_of<Sum>())),
      max_phases_in_turn);
}

template <class Sum, bool swapped, KnownAxis rows>
void add_tiles(KernelTable& table) {
  constexpr DirectTiledPolicy policy{plan::emulated_direct_tile, plan::emulated_direct_threads, swapped,
                                     rows};
  using Traits =
      DirectTiledTraits<policy, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_kernel<&direct_tiled_of_phases_kernel<Traits, max_phases_in_turn>,
             PhasesInTurn<typename Traits::Params, max_phases_in_turn>>(
      table, "direct_tiled_of_phases_kernel", plan::traits_of(policy, plan::emulated_types(type_of<Sum>())),
      max_phases_in_turn);
}

template <class Sum, bool swapped>
void add_tiles_of(KernelTable& table) {
  if constexpr (is_same<Sum, f32>) {
    add_tiles<f32, swapped, phases>(table);
    add_tiles<f32, swapped, three_taps>(table);
    add_tiles<f32, swapped, KnownAxis{.taps = 3, .output_step = 2}>(table);
  }
  add_tiles<Sum, swapped, KnownAxis{}>(table);
}

}  // namespace

void add_sliding(KernelTable& table) {
  add_depthwise<f32, DepthwisePolicy{true, 4, phases}>(table);
  add_depthwise<f32, DepthwisePolicy{true, 1, phases}>(table);
  add_depthwise<f32, DepthwisePolicy{false, 1, phases}>(table);
  add_depthwise<f32, DepthwisePolicy{true, 4, three_taps}>(table);
  add_depthwise<f32, DepthwisePolicy{true, 1, three_taps}>(table);
  add_depthwise<f32, DepthwisePolicy{false, 1, three_taps}>(table);
  for_sums([&]<class Sum>(Sum) {
    add_depthwise<Sum, DepthwisePolicy{.channels_last = true}>(table);
    add_depthwise<Sum, DepthwisePolicy{}>(table);
    add_tiles_of<Sum, false>(table), add_tiles_of<Sum, true>(table);
  });
}

}  // namespace cosmati::emulator
