// The direct convolution with the image's tile and the filters in shared memory (Kirk and Hwu, figure 16.13,
// with the tile's own indices, one tile size, strides, padding, dilation and groups): every element that a
// block needs comes from memory once, and a thread keeps rows * filters sums in registers.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/digit_destination.h"
#include "cosmati/conv/direct_tile.h"
#include "cosmati/conv/sliding.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `swapped`: the result's m are filters and its n pixels.
template <DirectTile tile_, class ElementA_, class ElementB_, class Sum_, class Epilogue_, class Destination_,
          bool swapped_>
struct DirectTiledTraits {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DirectTiledParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr DirectTile tile = tile_;
  static constexpr bool swapped = swapped_;
  static constexpr int threads = tile.threads();
};

template <class Traits>
struct DirectTiled {
  using ElementA = typename Traits::ElementA;
  using ElementB = typename Traits::ElementB;
  using Sum = typename Traits::Sum;
  using Real = typename Traits::Epilogue::Real;
  static constexpr DirectTile tile = Traits::tile;
  static constexpr int thread_rows = tile.thread_rows, thread_filters = tile.thread_filters;

  SlidingArguments const& window;
  DirectTileSchedule const& schedule;
  ElementA const* image;   // of this image and group
  ElementB const* filter;  // of this group
  int first_row, first_column, first_filter;
  Sum* pixels;   // (channels, halo rows, halo columns)
  Sum* weights;  // (channels, taps, filters)

  // Channels from `first` on; what does not exist is zero.
  COSMATI_DEVICE void load(int first) const {
    WindowAxis const &rows = window.rows, &columns = window.columns;
    int const top = origin(rows, first_row), left = origin(columns, first_column);
    for (int i = arch::thread(); i < schedule.halo.divisor * schedule.channels; i += Traits::threads) {
      int const by_halo = schedule.halo.quotient(i), by_channels = schedule.channels_at_a_time.quotient(i);
      int const c = schedule.channels_last ? i - by_channels * schedule.channels : by_halo;
      int const at = schedule.channels_last ? by_channels : i - by_halo * schedule.halo.divisor;
      int const halo_row = schedule.halo_columns.quotient(at);
      int const row = top + halo_row, column = left + at - halo_row * schedule.halo_columns.divisor;
      bool const exists = first + c < window.inputs &&
                          static_cast<unsigned>(row) < static_cast<unsigned>(rows.size) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(columns.size);
      ElementA const* const address =
          image + (first + c) * window.image_input + row * rows.image_stride + column * columns.image_stride;
      pixels[c * schedule.halo.divisor + at] =
          exists ? arch::number_cast<Sum>(arch::load_constant<ElementA>(address)) : Sum{};
    }
    int const taps = rows.taps * columns.taps;
    for (int i = arch::thread(); i < schedule.channels * taps * tile.filters; i += Traits::threads) {
      int const of_filter = i / tile.filters, f = i - of_filter * tile.filters;
      int const c = of_filter / taps, tap = of_filter - c * taps;
      int const r = tap / columns.taps, s = tap - r * columns.taps;
      bool const exists = first + c < window.inputs && first_filter + f < window.outputs;
      ElementB const* const address = filter + (first_filter + f) * window.filter_output +
                                      (first + c) * window.filter_input + r * rows.filter_stride +
                                      s * columns.filter_stride;
      weights[i] = exists ? arch::number_cast<Sum>(arch::load_constant<ElementB>(address)) : Sum{};
    }
  }

  // The place of the tile's first row or column: the lowest that its windows reach.
  COSMATI_DEVICE static int origin(WindowAxis const& axis, int output) {
    return axis.origin + output * axis.output_step +
           (axis.tap_step < 0 ? (axis.taps - 1) * axis.tap_step : 0);
  }
  // Of tap 0 of the tile's first output in the halo.
  COSMATI_DEVICE static int begin(WindowAxis const& axis) {
    return axis.tap_step < 0 ? (1 - axis.taps) * axis.tap_step : 0;
  }

  COSMATI_DEVICE void multiply(int row, int column, int of_filter,
                               Sum (&sum)[thread_rows][thread_filters]) const {
    WindowAxis const &rows = window.rows, &columns = window.columns;
    int const pitch = schedule.halo_columns.divisor;
    Sum const* channel = pixels + (begin(rows) + row * rows.output_step) * pitch + begin(columns) +
                         column * columns.output_step;
    Sum const* weight = weights + of_filter;
    for (int c = 0; c < schedule.channels; ++c, channel += schedule.halo.divisor)
      for (int r = 0; r < rows.taps; ++r)
        for (int s = 0; s < columns.taps; ++s, weight += tile.filters) {
          Sum const* const place = channel + r * rows.tap_step * pitch + s * columns.tap_step;
          auto const by = arch::load<Vector<Sum, thread_filters>>(weight);
          COSMATI_UNROLL
          for (int i = 0; i < thread_rows; ++i) {
            Sum const value = place[i * rows.output_step * pitch];
            COSMATI_UNROLL
            for (int f = 0; f < thread_filters; ++f) sum[i][f] = arch::multiply_add(value, by[f], sum[i][f]);
          }
        }
  }
};

// Grid: (images * tiles down * tiles across, filters / tile.filters rounded up, groups); dynamic shared
// memory: the weights, then the pixels.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 2)
direct_tiled_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = DirectTiled<Traits>;
  using Sum = typename Traits::Sum;
  using Real = typename Block::Real;
  constexpr DirectTile tile = Traits::tile;
  SlidingArguments const& window = params.window;
  DirectTileSchedule const& schedule = params.schedule;
  Index const group = schedule.first_group + arch::block_z();
  int const down_of_all = schedule.tiles_across.quotient(arch::block_x());
  int const n = schedule.tiles_down.quotient(down_of_all);
  int const first_row = (down_of_all - n * schedule.tiles_down.divisor) * tile.rows;
  int const first_column = (arch::block_x() - down_of_all * schedule.tiles_across.divisor) * tile.columns;
  Sum* const weights = &arch::shared_storage<Sum>();
  Block const block{window,
                    schedule,
                    arch::as_global(static_cast<typename Traits::ElementA const*>(window.image)) +
                        group * window.image_group + n * window.image_stride,
                    arch::as_global(static_cast<typename Traits::ElementB const*>(window.filter)) +
                        group * window.filter_group,
                    first_row,
                    first_column,
                    arch::block_y() * tile.filters,
                    weights + schedule.channels * window.rows.taps * window.columns.taps * tile.filters,
                    weights};

  constexpr int threads_down = tile.rows / tile.thread_rows;
  int const column = arch::thread() % tile.columns, rest = arch::thread() / tile.columns;
  int const row = rest % threads_down * tile.thread_rows,
            of_filter = rest / threads_down * tile.thread_filters;
  Sum sum[tile.thread_rows][tile.thread_filters] = {};
  for (int first = 0; first < window.inputs; first += schedule.channels) {
    if (first > 0) arch::block_barrier();
    block.load(first);
    arch::block_barrier();
    block.multiply(row, column, of_filter, sum);
  }

  int const filter = block.first_filter + of_filter;
  int const valid =
      window.outputs - filter < tile.thread_filters ? window.outputs - filter : tile.thread_filters;
  if (first_column + column >= window.columns.outputs || valid <= 0) return;
  int const pixel = n * window.image_number + (first_row + row) * window.rows.number +
                    (first_column + column) * window.columns.number;
  COSMATI_UNROLL
  for (int i = 0; i < tile.thread_rows; ++i) {
    if (first_row + row + i >= window.rows.outputs) break;
    int const at = pixel + i * window.rows.number;
    constexpr int count = Traits::swapped ? 1 : tile.thread_filters;
    COSMATI_UNROLL
    for (int f = 0; f < tile.thread_filters; f += count) {
      if (f >= valid) break;
      Real value[count];
      COSMATI_UNROLL
      for (int v = 0; v < count; ++v) value[v] = arch::number_cast<Real>(sum[i][f + v]);
      int const m = Traits::swapped ? filter + f : at, at_n = Traits::swapped ? at : filter;
      int const present = Traits::swapped ? 1 : valid;
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, group, m, at_n);
      Traits::Epilogue::apply(epilogue, 0, 0, present, value);
      typename Traits::Destination::Tile const d(params.d, group, m, at_n);
      d.store(0, 0, present, value);
    }
  }
}

}  // namespace cosmati
