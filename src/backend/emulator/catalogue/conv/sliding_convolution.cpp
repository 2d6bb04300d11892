// The emulator's depthwise and tiled direct convolutions, by accumulator type and by the contiguous index of
// the result.
#include "cosmati/conv/depthwise.h"
#include "cosmati/conv/direct_tiled.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::emulator {
namespace {

template <class Sum, bool channels_last, int vector, int taps, int tap_step, bool uneven>
void add_depthwise(KernelTable& table) {
  using Traits = DepthwiseTraits<Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination,
                                 channels_last, vector, taps, 1, tap_step, uneven>;
  add_kernel<&depthwise_of_phases_kernel<Traits, max_phases_in_turn>,
             PhasesInTurn<typename Traits::Params, max_phases_in_turn>>(
      table, "depthwise_of_phases_kernel",
      plan::DepthwiseTraits{
          plan::emulated_types(type_of<Sum>()), channels_last, vector, {taps, 1, tap_step, uneven}}
          .print(),
      max_phases_in_turn);
}

template <class Sum, bool swapped, int taps, int output_step, int tap_step, bool uneven>
void add_tiles(KernelTable& table) {
  using Traits = DirectTiledTraits<plan::emulated_direct_tile, plan::emulated_direct_threads, Sum, Sum, Sum,
                                   ConvolutionHostEpilogue, ConvolutionHostDestination, swapped, taps,
                                   output_step, tap_step, uneven>;
  add_kernel<&direct_tiled_of_phases_kernel<Traits, max_phases_in_turn>,
             PhasesInTurn<typename Traits::Params, max_phases_in_turn>>(
      table, "direct_tiled_of_phases_kernel",
      plan::DirectTiledTraits{plan::emulated_direct_tile,
                              plan::emulated_direct_threads,
                              plan::emulated_types(type_of<Sum>()),
                              swapped,
                              {taps, output_step, tap_step, uneven}}
          .print(),
      max_phases_in_turn);
}

template <class Sum, bool swapped>
void add_tiles_of(KernelTable& table) {
  if constexpr (is_same<Sum, f32>) {
    add_tiles<f32, swapped, 2, 1, -1, true>(table);
    add_tiles<f32, swapped, 3, 1, 1, false>(table);
    add_tiles<f32, swapped, 3, 2, 1, false>(table);
  }
  add_tiles<Sum, swapped, 0, 1, 1, false>(table);
}

}  // namespace

void add_sliding(KernelTable& table) {
  add_depthwise<f32, true, 4, 2, -1, true>(table);
  add_depthwise<f32, true, 1, 2, -1, true>(table);
  add_depthwise<f32, false, 1, 2, -1, true>(table);
  add_depthwise<f32, true, 4, 3, 1, false>(table);
  add_depthwise<f32, true, 1, 3, 1, false>(table);
  add_depthwise<f32, false, 1, 3, 1, false>(table);
  for_sums([&]<class Sum>(Sum) {
    add_depthwise<Sum, true, 1, 0, 1, false>(table);
    add_depthwise<Sum, false, 1, 0, 1, false>(table);
    add_tiles_of<Sum, false>(table), add_tiles_of<Sum, true>(table);
  });
}

}  // namespace cosmati::emulator
