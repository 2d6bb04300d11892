// Depthwise convolution (groups = C, any number K / C of filters per channel). It is memory-bound, so each
// element is read once. A thread computes `run` adjacent outputs of `vector` channels and keeps the image
// elements shared by their windows in registers; the filters of the block's channels are in shared memory.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/phases_in_turn.h"
#include "cosmati/conv/sliding.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

template <DepthwisePolicy policy, class ElementA_, class ElementB_, class Sum_, class Epilogue_,
          class Destination_>
struct DepthwiseTraits {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DepthwiseParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr int threads = 128, run = 4;
  static constexpr bool channels_last = policy.channels_last;
  static constexpr int vector = policy.vector;
  static constexpr KnownAxis axis = policy.axis;
  static_assert(vector == 1 || channels_last);
  static_assert(axis.taps > 0 || !axis.uneven);

  // The filters of a block's channels; their number is known only at run time.
  struct SharedStorage {
    Sum filters[1];  // (input, row, column, channel)
  };
};

// The accumulators of one thread.
template <class Traits>
struct DepthwiseSums {
  using Sum = typename Traits::Sum;
  using ElementA = typename Traits::ElementA;
  static constexpr int run = Traits::run, vector = Traits::vector;
  static constexpr KnownAxis axis = Traits::axis;

  Sum sum[run][vector] = {};

  COSMATI_DEVICE static void load(ElementA const* address, bool exists, Sum (&to)[vector]) {
    Vector<ElementA, vector> value{};
    if (exists) value = arch::load_constant<Vector<ElementA, vector>>(address);
    COSMATI_UNROLL
    for (int v = 0; v < vector; ++v) to[v] = arch::number_cast<Sum>(value[v]);
  }

  // Adds all taps of `along` for one tap of the other axis. `image`: position 0 of the axis; `first`: the
  // position of the first output's tap 0; `filter`: tap 0 in shared memory, with `pitch` elements between
  // taps.
  COSMATI_DEVICE void add(WindowAxis const& along, ElementA const* image, int first, Sum const* filter,
                          int pitch) {
    if (!axis.uneven || along.taps == axis.taps)
      add_taps<axis.taps>(along, image, first, filter, pitch);
    else if constexpr (axis.taps > 1) {
      if (along.taps > 0) add_taps<axis.taps - 1>(along, image, first, filter, pitch);
    }
  }

  template <int taps>
  COSMATI_DEVICE void add_taps(WindowAxis const& along, ElementA const* image, int first, Sum const* filter,
                               int pitch) {
    constexpr auto known = known_window(taps, axis.output_step, axis.tap_step, run);
    auto const exists = [&](int place) {
      return static_cast<unsigned>(place) < static_cast<unsigned>(along.size);
    };
    Sum value[known.places][vector];
    if constexpr (taps > 0) {
      COSMATI_UNROLL
      for (int p = 0; p < known.places; ++p) {
        int const place = first + known.lowest + p;
        load(image + place * along.image_stride, exists(place), value[p]);
      }
      COSMATI_UNROLL
      for (int t = 0; t < taps; ++t) {
        auto const weight = arch::load<Vector<Sum, vector>>(filter + t * pitch);
        COSMATI_UNROLL
        for (int o = 0; o < run; ++o) {
          COSMATI_UNROLL
          for (int v = 0; v < vector; ++v)
            sum[o][v] = arch::multiply_add(value[o * axis.output_step + t * axis.tap_step - known.lowest][v],
                                           weight[v], sum[o][v]);
        }
      }
    } else {
      for (int t = 0; t < along.taps; ++t) {
        auto const weight = arch::load<Vector<Sum, vector>>(filter + t * pitch);
        COSMATI_UNROLL
        for (int o = 0; o < run; ++o) {
          int const place = first + o * along.output_step + t * along.tap_step;
          load(image + place * along.image_stride, exists(place), value[o]);
          COSMATI_UNROLL
          for (int v = 0; v < vector; ++v) sum[o][v] = arch::multiply_add(value[o][v], weight[v], sum[o][v]);
        }
      }
    }
  }
};

// Loads the filters of the channels starting at `first` as (input, row, column, channel), converted to the
// type of the sums.
template <class Traits>
COSMATI_DEVICE void load_filters(SlidingArguments const& window, DepthwiseSchedule const& schedule, int first,
                                 int channels, typename Traits::Sum* shared) {
  using ElementB = typename Traits::ElementB;
  auto const* const filter = static_cast<ElementB const*>(window.filter);
  int const taps = window.rows.taps * window.columns.taps;
  for (int i = arch::thread(); i < channels * taps * window.inputs; i += Traits::threads) {
    int const tap_of_input = i / channels, c = i - tap_of_input * channels;
    int const input = tap_of_input / taps, tap = tap_of_input - input * taps;
    int const row = tap / window.columns.taps, column = tap - row * window.columns.taps;
    int const channel = first + c, group = schedule.outputs.quotient(channel);
    bool const exists = channel < schedule.channels;
    Index const at =
        group * window.filter_group + (channel - group * schedule.outputs.divisor) * window.filter_output +
        input * window.filter_input + row * window.rows.filter_stride + column * window.columns.filter_stride;
    shared[i] = exists ? arch::number_cast<typename Traits::Sum>(arch::load_constant<ElementB>(filter + at))
                       : typename Traits::Sum{};
  }
}

// Computes block `block` of a grid of channel tiles * ceil(items / items_of_block) blocks.
template <class Traits>
COSMATI_DEVICE void compute_depthwise(typename Traits::Params const& params, int block) {
  using Sum = typename Traits::Sum;
  using Real = typename Traits::Epilogue::Real;
  using ElementA = typename Traits::ElementA;
  constexpr int vector = Traits::vector, run = Traits::run;
  constexpr bool last = Traits::channels_last;
  SlidingArguments const& window = params.window;
  DepthwiseSchedule const& schedule = params.schedule;
  WindowAxis const &along = last ? window.columns : window.rows,
                   &across = last ? window.rows : window.columns;

  int const lanes = 1 << schedule.log2_lanes, lane = arch::thread() & (lanes - 1);
  int const chunk = schedule.channel_tiles.quotient(block);
  int const tile = block - chunk * schedule.channel_tiles.divisor;
  int const channels = last ? lanes * vector : 1, first_channel = tile * channels;
  Sum* const filters = arch::shared_storage<typename Traits::SharedStorage>().filters;
  load_filters<Traits>(window, schedule, first_channel, channels, filters);
  arch::block_barrier();

  int const channel = first_channel + (last ? lane * vector : 0);
  if (channel >= schedule.channels) return;
  int const group = schedule.outputs.quotient(channel);
  auto const* const image =
      arch::as_global(static_cast<ElementA const*>(window.image)) + group * window.image_group;
  int const begin = chunk * schedule.items_of_block;
  int const end =
      begin + schedule.items_of_block < schedule.items ? begin + schedule.items_of_block : schedule.items;
  COSMATI_NO_UNROLL
  for (int item = begin + (arch::thread() >> schedule.log2_lanes); item < end;
       item += Traits::threads >> schedule.log2_lanes) {
    int const upper = schedule.runs.quotient(item), n = schedule.across.quotient(upper);
    int const output = (item - upper * schedule.runs.divisor) * run;
    int const other = (upper - n * schedule.across.divisor) * (last ? 1 : lanes) + (last ? 0 : lane);
    if (other >= across.outputs) continue;
    DepthwiseSums<Traits> sums;
    for (int i = 0; i < window.inputs; ++i)
      for (int tap = 0; tap < across.taps; ++tap) {
        int const place = across.origin + other * across.output_step + tap * across.tap_step;
        if (static_cast<unsigned>(place) >= static_cast<unsigned>(across.size)) continue;
        int const row = last ? tap : 0, column = last ? 0 : tap;
        sums.add(along,
                 image + n * window.image_stride + i * window.image_input + place * across.image_stride,
                 along.origin + output * along.output_step,
                 filters + ((i * window.rows.taps + row) * window.columns.taps + column) * channels +
                     (last ? lane * vector : 0),
                 last ? channels : window.columns.taps);
      }
    int const pixel = n * window.image_number + other * across.number + output * along.number;
    COSMATI_UNROLL
    for (int o = 0; o < run; ++o) {
      if (output + o >= along.outputs) break;
      Real value[vector];
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v) value[v] = arch::number_cast<Real>(sums.sum[o][v]);
      int const at = pixel + o * along.number, m = last ? at : channel, at_n = last ? channel : at;
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, m, at_n);
      Traits::Epilogue::apply(epilogue, 0, 0, vector, value);
      typename Traits::Destination::Tile const d(params.d, 0, m, at_n);
      d.store(0, 0, vector, value);
    }
  }
}

// Grid: channel tiles * ceil(items / items_of_block); block: Traits::threads; dynamic shared memory:
// SharedStorage, whose filters have inputs * taps * channels of a tile elements.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 3)
depthwise_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  compute_depthwise<Traits>(params, arch::block_x());
}

// The same for a strided data gradient: the blocks of all phases.
template <class Traits, int max_phases>
COSMATI_KERNEL(Traits::threads, 3)
depthwise_of_phases_kernel(COSMATI_PARAMETER PhasesInTurn<typename Traits::Params, max_phases> phases) {
  PhaseBlock const at = phase_and_block(phases, arch::block_x());
  compute_depthwise<Traits>(phases.phase[at.phase].params, at.block);
}

}  // namespace cosmati
