// The filter gradient of a depthwise convolution with few pixels per channel, in a single launch: a block
// copies all its pixels of x and dy to shared memory at once, so that it waits for memory only once. A thread
// keeps the sums of one row of taps, and adds runs of columns of dy. Lanes add their sums by shuffles, warps
// in shared memory, and the blocks that share a tile of channels, a cluster, in the shared memory of one of
// them, all in a fixed order, so that the result is deterministic.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/cluster.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/words.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/depthwise/depthwise_tile_arguments.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// x and dy have the same type, and contiguous channels.
template <class ElementImage_, class ElementGradient_, class Sum_, class Epilogue_, class Destination_,
          DepthwiseTileShape shape_>
struct DepthwiseTileTraits {
  using Element = ElementImage_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DepthwiseTileParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr DepthwiseTileShape shape = shape_;
  static constexpr int threads = shape.threads();
  static constexpr int results = shape.taps() * shape.channels;
  // Those that a block of a cluster adds.
  static constexpr int own_results = (results + shape.cluster - 1) / shape.cluster;
  static constexpr int pixel_bytes = shape.channels * static_cast<int>(sizeof(Element));
  static constexpr int copy_bytes = pixel_bytes < 16 ? pixel_bytes : 16;

  struct alignas(shape.vector * sizeof(Element)) Run {
    arch::Words<shape.vector* static_cast<int>(sizeof(Element))> words;
  };
  struct alignas(16) SharedStorage {
    Sum of_warp[threads / 32][shape.column_taps][shape.channels];
    Sum of_block[shape.cluster][shape.cluster > 1 ? own_results : 1];
    // The pixels of x and then those of dy, `lanes` runs each.
    COSMATI_DEVICE Run* pixels() { return reinterpret_cast<Run*>(this + 1); }
  };
  static_assert(sizeof(Element) == sizeof(ElementGradient_), "x and dy must have the same type");
  static_assert(pixel_bytes == 4 || pixel_bytes == 8 || pixel_bytes % 16 == 0);
  static_assert(sizeof(Run) == shape.vector * sizeof(Element));
};

template <class Traits>
struct DepthwiseTile {
  using Element = typename Traits::Element;
  using Sum = typename Traits::Sum;
  using Run = typename Traits::Run;
  static constexpr DepthwiseTileShape shape = Traits::shape;
  static constexpr int vector = shape.vector, run = shape.run, lanes = shape.lanes(),
                       columns = shape.columns_in();

  DepthwiseTileArguments const& all;
  int const first_unit;  // of the block
  Run* const image;
  Run* const gradient;

  COSMATI_DEVICE int image_of(int unit) const { return shape.divided ? all.row_parts.quotient(unit) : unit; }

  // Copies the pixels of all units, whose first row is `step` rows below that of the previous unit of the
  // image; the first one is at (top, left). Positions outside of the tensor become zero.
  COSMATI_DEVICE void copy(DepthwiseTilePixels const& from, int channel, int step, int top, int left,
                           Run* to) const {
    constexpr int copies = Traits::pixel_bytes / Traits::copy_bytes;  // of a pixel
    int const total = all.units_of_block * from.rows.divisor * from.columns.divisor * copies;
    auto const* const data = arch::as_global(static_cast<Element const*>(from.data)) + channel;
    COSMATI_NO_UNROLL
    for (int i = arch::thread(); i < total; i += Traits::threads) {
      int const pixel = i / copies, copy = i - pixel * copies;
      int const row = from.columns.quotient(pixel), column = pixel - row * from.columns.divisor;
      int const of_block = from.rows.quotient(row), unit = first_unit + of_block;
      int const n = image_of(unit), part = unit - n * all.row_parts.divisor;
      int const y = top + (shape.divided ? part * step : 0) + row - of_block * from.rows.divisor,
                x = left + column;
      bool const exists = unit < all.units && static_cast<unsigned>(y) < static_cast<unsigned>(from.height) &&
                          static_cast<unsigned>(x) < static_cast<unsigned>(from.width);
      int const offset = exists ? n * from.image_stride + y * from.row_stride + x * from.column_stride : 0;
      arch::copy_async<Traits::copy_bytes>(to + (row * from.pitch + column) * lanes + copy * (lanes / copies),
                                           data + offset + copy * (shape.channels / copies),
                                           exists ? Traits::copy_bytes : 0);
    }
  }

  // Adds the products of the runs of this thread for row `r` of the taps. An element of x that would pair
  // with a nonexistent column of dy is not multiplied by zero, since it may be infinite.
  COSMATI_DEVICE void add(int r, int slot, int lane, Sum (&sum)[shape.column_taps][vector]) const {
    int const rows = all.gradient.rows.divisor;
    COSMATI_NO_UNROLL
    for (int item = slot; item < all.items; item += shape.slots()) {
      // Rows first: slots that are rows apart read different banks, as pitches are odd.
      int const index = shape.whole > 0 ? 0 : all.block_rows.quotient(item),
                row = item - index * all.block_rows.divisor;
      int const of_block = all.gradient.rows.quotient(row), p = row - of_block * rows;
      int const unit = first_unit + of_block;
      int const y = shape.divided ? (unit - image_of(unit) * all.row_parts.divisor) * rows + p : p;
      if (unit >= all.units || (shape.divided && y >= all.gradient.height) ||
          static_cast<unsigned>(y * shape.row_step + r - all.pad_row) >=
              static_cast<unsigned>(all.image.height))
        continue;
      Run const* const dy = gradient + (row * all.gradient.pitch + index * run) * lanes + lane;
      int const image_row = of_block * all.image.rows.divisor + p * shape.row_step + r;
      Run const* const x =
          image + (image_row * all.image.pitch + index * run * shape.column_step) * lanes + lane;
      Run dy_run[run], x_run[columns];
      COSMATI_UNROLL
      for (int o = 0; o < run; ++o) dy_run[o] = dy[o * lanes];
      COSMATI_UNROLL
      for (int i = 0; i < columns; ++i)
        if (has_column(i, shape.whole, shape.before)) x_run[i] = x[(i - shape.before) * lanes];
      multiply(dy_run, x_run, all.gradient.width - index * run, sum);
    }
  }
  COSMATI_DEVICE static void multiply(Run const (&dy)[run], Run const (&x)[columns], int valid,
                                      Sum (&sum)[shape.column_taps][vector]) {
    Sum value[columns][vector];
    COSMATI_UNROLL
    for (int i = 0; i < columns; ++i) {
      if (!has_column(i, shape.whole, shape.before)) continue;
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v) value[i][v] = arch::widened<Element>(x[i].words, v);
    }
    COSMATI_UNROLL
    for (int o = 0; o < run; ++o) {
      if (shape.ragged && o >= valid) break;
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v) {
        Sum const factor = arch::widened<Element>(dy[o].words, v);
        COSMATI_UNROLL
        for (int s = 0; s < shape.column_taps; ++s) {
          int const i = o * shape.column_step + s;
          if (has_column(i, shape.whole, shape.before))
            sum[s][v] = arch::multiply_add(value[i][v], factor, sum[s][v]);
        }
      }
    }
  }
};

// Adds the sums of the lanes of a warp that have the same channels; the first ones store them.
template <class Traits>
COSMATI_DEVICE void add_lanes(typename Traits::SharedStorage& shared,
                              typename Traits::Sum (&sum)[Traits::shape.column_taps][Traits::shape.vector]) {
  constexpr DepthwiseTileShape shape = Traits::shape;
  int const warp = arch::thread() / 32, lane = arch::thread() % 32;
  COSMATI_UNROLL
  for (int mask = shape.lanes(); mask < 32; mask *= 2) {
    COSMATI_UNROLL
    for (int s = 0; s < shape.column_taps; ++s) {
      COSMATI_UNROLL
      for (int v = 0; v < shape.vector; ++v) sum[s][v] += arch::exchange(sum[s][v], mask);
    }
  }
  if (lane >= shape.lanes()) return;
  COSMATI_UNROLL
  for (int s = 0; s < shape.column_taps; ++s) {
    COSMATI_UNROLL
    for (int v = 0; v < shape.vector; ++v) shared.of_warp[warp][s][lane * shape.vector + v] = sum[s][v];
  }
}

// The sum of all warps for result `i` of the block, in the order (channel, tap).
template <class Traits>
COSMATI_DEVICE typename Traits::Sum block_sum(typename Traits::SharedStorage const& shared, int i) {
  constexpr DepthwiseTileShape shape = Traits::shape;
  int const channel = i / shape.taps(), tap = i - channel * shape.taps();
  int const r = tap / shape.column_taps, s = tap - r * shape.column_taps;
  typename Traits::Sum sum = shared.of_warp[r * shape.warps][s][channel];
  COSMATI_UNROLL
  for (int w = 1; w < shape.warps; ++w) sum += shared.of_warp[r * shape.warps + w][s][channel];
  return sum;
}

template <class Traits>
COSMATI_DEVICE void store_result(typename Traits::Params const& params, int first_channel, int i,
                                 typename Traits::Sum sum) {
  constexpr DepthwiseTileShape shape = Traits::shape;
  int const channel = i / shape.taps(), tap = i - channel * shape.taps();
  int const r = tap / shape.column_taps, s = tap - r * shape.column_taps;
  int const number = r * params.all.tap_row_number + s * params.all.tap_column_number;
  store_weight<Traits>(params, params.all.swapped, 0, first_channel + channel, number, sum);
}

// Grid: tiles of channels * cluster; dynamic shared memory: SharedStorage and the pixels.
template <class Traits>
COSMATI_CLUSTER_KERNEL(Traits::threads, Traits::shape.blocks(), Traits::shape.cluster)
depthwise_tile_filter_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Sum = typename Traits::Sum;
  constexpr DepthwiseTileShape shape = Traits::shape;
  constexpr int results = Traits::results, own = Traits::own_results;
  DepthwiseTileArguments const& all = params.all;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  int const tile = arch::block_x() / shape.cluster, part = arch::block_x() - tile * shape.cluster;
  int const channel = tile * shape.channels;
  auto* const image = shared.pixels();
  auto* const gradient =
      image + all.units_of_block * all.image.rows.divisor * all.image.pitch * shape.lanes();
  DepthwiseTile<Traits> const block{all, part * all.units_of_block, image, gradient};
  if constexpr (shape.early) {
    arch::let_next_kernel_start();
    arch::wait_for_previous_kernel();
  }
  if constexpr (shape.cluster > 1) arch::cluster_arrive_relaxed();  // this block runs
  int const rows = all.gradient.rows.divisor;
  block.copy(all.gradient, channel, rows, 0, 0, gradient);
  block.copy(all.image, channel, rows * shape.row_step, -all.pad_row, shape.whole > 0 ? 0 : -all.pad_column,
             image);
  arch::commit_copies();
  arch::wait_copies<0>();
  arch::block_barrier();

  int const warp = arch::thread() / 32, lane = arch::thread() % 32;
  Sum sum[shape.column_taps][shape.vector] = {};
  block.add(warp / shape.warps, warp % shape.warps * (32 / shape.lanes()) + lane / shape.lanes(),
            lane % shape.lanes(), sum);
  add_lanes<Traits>(shared, sum);
  arch::block_barrier();
  if constexpr (shape.cluster == 1) {
    COSMATI_NO_UNROLL
    for (int i = arch::thread(); i < results; i += Traits::threads)
      store_result<Traits>(params, channel, i, block_sum<Traits>(shared, i));
  } else {
    arch::cluster_wait();  // all blocks run, so that their shared memory exists
    COSMATI_NO_UNROLL
    for (int i = arch::thread(); i < results; i += Traits::threads) {
      int const owner = i / own;
      *arch::in_block(&shared.of_block[part][i - owner * own], owner) = block_sum<Traits>(shared, i);
    }
    arch::warp_barrier();  // the next instructions are those of complete warps
    arch::cluster_arrive();
    arch::cluster_wait();
    COSMATI_NO_UNROLL
    for (int i = arch::thread(); i < own && part * own + i < results; i += Traits::threads) {
      Sum total = shared.of_block[0][i];
      COSMATI_UNROLL
      for (int k = 1; k < shape.cluster; ++k) total += shared.of_block[k][i];
      store_result<Traits>(params, channel, part * own + i, total);
    }
  }
}

}  // namespace cosmati
