// The filter gradient of a depthwise convolution: for each channel and tap the sum over all images and
// outputs, dw[k, r, s] = sum of dy[n, k, p, q] * x[n, k / outputs, h, w]. A block sums a part of the images'
// rows for some channels and adjacent taps; a second kernel adds the parts in a fixed order, so that the
// result is deterministic.
#pragma once
#include "cosmati/conv/depthwise.h"

namespace cosmati {

template <DepthwiseFilterPolicy policy, class ElementImage_, class ElementGradient_, class Sum_,
          class Epilogue_, class Destination_>
struct DepthwiseFilterTraits {
  using ElementImage = ElementImage_;
  using ElementGradient = ElementGradient_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DepthwiseFilterParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr int threads = 128;
  static constexpr bool channels_last = policy.channels_last, swapped = policy.swapped;
  static constexpr int vector = policy.vector, taps = policy.taps;
  struct SharedStorage {
    Sum sum[taps][vector][threads];
  };
};

// Grid: channel tiles * tap groups * parts; block: threads; dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 4)
depthwise_filter_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Sum = typename Traits::Sum;
  using Image = typename Traits::ElementImage;
  using Gradient = typename Traits::ElementGradient;
  constexpr int vector = Traits::vector, taps = Traits::taps;
  constexpr bool last = Traits::channels_last;
  SlidingArguments const& window = params.window;
  DepthwiseFilterSchedule const& schedule = params.schedule;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();

  int const lanes = 1 << schedule.log2_lanes, lane = arch::thread() & (lanes - 1);
  int const above_tiles = schedule.channel_tiles.quotient(arch::block_x());
  int const tile = arch::block_x() - above_tiles * schedule.channel_tiles.divisor;
  int const part = schedule.tap_groups.quotient(above_tiles);
  int const tap_group = above_tiles - part * schedule.tap_groups.divisor;
  int const tap_row = schedule.taps_across.quotient(tap_group);
  int const first_tap = (tap_group - tap_row * schedule.taps_across.divisor) * taps;
  int const first_channel = tile * (last ? lanes * vector : 1);
  int const channel = first_channel + (last ? lane * vector : 0);

  Sum sum[taps][vector] = {};
  if (channel < schedule.channels) {
    int const group = schedule.outputs.quotient(channel);
    auto const* const image =
        arch::as_global(static_cast<Image const*>(window.image)) + group * window.image_group;
    auto const* const gradient =
        arch::as_global(static_cast<Gradient const*>(params.gradient)) + channel * params.gradient_channel;
    int const begin = part * schedule.rows_of_part;
    int const end =
        begin + schedule.rows_of_part < schedule.rows ? begin + schedule.rows_of_part : schedule.rows;
    for (int row = begin + (arch::thread() >> schedule.log2_lanes); row < end;
         row += Traits::threads >> schedule.log2_lanes) {
      int const n = schedule.image_rows.quotient(row), p = row - n * schedule.image_rows.divisor;
      int const h = window.rows.origin + p * window.rows.output_step + tap_row * window.rows.tap_step;
      if (static_cast<unsigned>(h) >= static_cast<unsigned>(window.rows.size)) continue;
      Image const* const image_row = image + n * window.image_stride + h * window.rows.image_stride;
      Gradient const* const gradient_row = gradient + n * params.gradient_image + p * params.gradient_row;
      for (int q = last ? 0 : lane; q < window.columns.outputs; q += last ? 1 : lanes) {
        auto const dy =
            arch::load_constant<Vector<Gradient, vector>>(gradient_row + q * params.gradient_column);
        int const first =
            window.columns.origin + q * window.columns.output_step + first_tap * window.columns.tap_step;
        COSMATI_UNROLL
        for (int t = 0; t < taps; ++t) {
          int const place = first + t * window.columns.tap_step;
          if (static_cast<unsigned>(place) >= static_cast<unsigned>(window.columns.size)) continue;
          auto const x =
              arch::load_constant<Vector<Image, vector>>(image_row + place * window.columns.image_stride);
          COSMATI_UNROLL
          for (int v = 0; v < vector; ++v)
            sum[t][v] =
                arch::multiply_add(arch::number_cast<Sum>(x[v]), arch::number_cast<Sum>(dy[v]), sum[t][v]);
        }
      }
    }
  }
  COSMATI_UNROLL
  for (int t = 0; t < taps; ++t) {
    COSMATI_UNROLL
    for (int v = 0; v < vector; ++v) shared.sum[t][v][arch::thread()] = sum[t][v];
  }
  arch::block_barrier();

  // One thread adds the block's sums for a channel and tap, in thread order.
  int const channels = last ? lanes * vector : 1, all_taps = window.rows.taps * window.columns.taps;
  Sum* const partials = static_cast<Sum*>(params.partials) + Index{part} * schedule.channels * all_taps;
  for (int i = arch::thread(); i < channels * taps; i += Traits::threads) {
    int const t = i / channels, c = i - t * channels;
    if (first_channel + c >= schedule.channels) continue;
    Sum total = 0;
    for (int at = last ? c / vector : 0; at < Traits::threads; at += last ? lanes : 1)
      total += shared.sum[t][c % vector][at];
    partials[Index{first_channel + c} * all_taps + tap_row * window.columns.taps + first_tap + t] = total;
  }
}

// Adds the parts. Grid: ceil(channels * taps / threads).
template <class Traits>
COSMATI_KERNEL(Traits::threads, 4)
depthwise_filter_sum_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Sum = typename Traits::Sum;
  DepthwiseFilterSchedule const& schedule = params.schedule;
  int const columns = params.window.columns.taps, taps = params.window.rows.taps * columns;
  Index const all = Index{schedule.channels} * taps;
  Index const index = Index{arch::block_x()} * Traits::threads + arch::thread();
  if (index >= all) return;
  Sum const* const partials = static_cast<Sum const*>(params.partials);
  Sum sum = 0;
  for (int part = 0; part < schedule.parts; ++part) sum += partials[part * all + index];
  int const channel = static_cast<int>(index / taps), tap = static_cast<int>(index - Index{channel} * taps);
  int const row = tap / columns;
  int const number = row * params.tap_row_number + (tap - row * columns) * params.tap_column_number;
  store_weight<Traits>(params, Traits::swapped, 0, channel, number, sum);
}

}  // namespace cosmati
