// The filter gradient of a convolution of images with few channels (the first layer of a network) on tensor
// cores: filters by taps and channels, with the outputs as depth. A block keeps the sums of its filters in
// registers and iterates over tiles of outputs: dy, and the patch of x that the tile reads, are in shared
// memory once, and every eight columns are a matrix of the patch at its own offset. The sum of dy, the bias
// gradient, is one more column of ones. A second kernel adds the blocks' sums in a fixed order.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/matrix.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/small_c/patch.h"
#include "cosmati/conv/small_c/wgrad_small_c_arguments.h"
#include "cosmati/conv/sum_of_blocks.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise only its place, how it is filled, and its numbers of
// warps and fragments apply. `column_tiles`: at least shape.tiles(). `swapped`: the filters are the
// columns of the result.
template <WgradSmallCShape shape_, int column_tiles, bool fixed_, bool swapped_, class Element_,
          class Epilogue_, class Destination_>
struct WgradSmallCTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = WgradSmallCParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool fixed = fixed_, swapped = swapped_, async = shape_.tile.async;
  static constexpr int threads = shape_.tile.threads(), blocks = shape_.tile.blocks;
  static constexpr int fragments = shape_.tile.fragments, place = shape_.tile.place;
  static constexpr int pixels = async ? 1 : fixed ? shape_.tile.pixels() : unfixed_fprop_pixels;
  static constexpr int warps_of_filters = shape_.warps_of_filters;
  static constexpr int warps_of_outputs = shape_.warps_of_outputs();
  static constexpr int size = static_cast<int>(sizeof(Element));
  static constexpr int filters = shape_.filters(), pitch = shape_.gradient_pitch(size);
  static constexpr int tiles = column_tiles, columns = (tiles + 1) * 8;
  COSMATI_DEVICE static WgradSmallCShape shape(WgradSmallCArguments const& all) {
    if constexpr (fixed) return shape_;
    return all.shape;
  }

  struct alignas(16) SharedStorage {
    COSMATI_DEVICE unsigned char* bytes() { return reinterpret_cast<unsigned char*>(this); }
  };

  static constexpr int sum_threads = 512;
  using SumStorage = SumOfBlocks<sum_threads, 16>;
};

template <class Traits>
struct WgradSmallC : SmallCPatch<Traits> {
  using Base = SmallCPatch<Traits>;
  using Base::shape, Base::window, Base::size;
  using typename Base::Element;
  static constexpr int tiles = Traits::tiles, fragments = Traits::fragments;
  static constexpr int depth = 32 / size;       // outputs of a step
  using Sums = float[fragments][tiles + 1][4];  // the last tile: the sum of dy

  WgradSmallCArguments const& all;
  WgradSmallCShape const of;
  int first_filter;

  // Whether output `output` of the tile exists; sets its row and column in the tile.
  COSMATI_DEVICE bool find(SmallCTile const& tile, int output, int& row, int& column) const {
    row = output / shape.across, column = output - row * shape.across;
    return output < shape.outputs() && tile.row + row < window.height && tile.column + column < window.width;
  }

  // Begins to copy a tile of dy, (output, filter), with zeros for outputs and filters that do not exist.
  COSMATI_DEVICE void load_gradient(SmallCTile const& tile, unsigned char* to) const {
    auto const* const from =
        arch::as_global(static_cast<Element const*>(all.gradient)) + tile.image * all.gradient_image;
    int const of_unit = of.gradient_unit / size, units = Traits::filters / of_unit;
    COSMATI_NO_UNROLL
    for (int item = arch::thread(); item < of.outputs_of_steps(size) * units; item += Traits::threads) {
      int const output = item / units, filter = item % units * of_unit;
      int row, column;
      bool const exists = find(tile, output, row, column) && first_filter + filter < window.filters;
      int offset = 0;
      if (exists)
        offset = (tile.row + row) * all.gradient_row + (tile.column + column) * all.gradient_column +
                 first_filter + filter;
      copy_unit(of.gradient_unit, to + output * Traits::pitch + filter * size, from + offset, exists);
    }
    arch::commit_copies();
  }

  // The window of an output of the tile, at the patch's first tap; zeros if there is no such output: what x
  // has there must not be multiplied, because infinity times zero is not zero.
  struct Window {
    unsigned char const* first;
    bool exists;
    COSMATI_DEVICE unsigned char const* at(int offset) const { return first + (exists ? offset : 0); }
  };
  COSMATI_DEVICE Window window_of(SmallCTile const& tile, int output, unsigned char const* patch,
                                  unsigned char const* zeros) const {
    int row, column;
    bool const exists = find(tile, output, row, column);
    int const pixel = row * shape.rows.stride * shape.patch_columns() + column * shape.columns.stride;
    return {exists ? patch + pixel * Base::pitch : zeros, exists};
  }
  // The offset of a tile of columns in a window.
  COSMATI_DEVICE int offset_of_tile(int tile) const {
    int const row = tile / of.tiles_of_row(), of_row = (tile - row * of.tiles_of_row()) * 8 * size;
    int const padding = of_row / Base::pixel_bytes * (Base::pitch - Base::pixel_bytes);
    return row * shape.patch_columns() * Base::pitch + of_row + padding;
  }

  // Adds the products of a tile. The matrices of an mma have the outputs as depth, but filters and taps are
  // contiguous: 16-bit elements are transposed as they are loaded, others are loaded one by one.
  COSMATI_DEVICE void multiply(SmallCTile const& tile, unsigned char const* zeros, unsigned char const* patch,
                               unsigned char const* gradient, Sums& sum) const {
    int const lane = arch::thread() % 32, warp = arch::thread() / 32, g = lane / 4, t = lane % 4;
    unsigned char const* const filters_of_warp =
        gradient + warp % Traits::warps_of_filters * fragments * 16 * size;
    unsigned const ones[2] = {ones_of(g == 0), ones_of(g == 0)};
    COSMATI_NO_UNROLL
    for (int step = warp / Traits::warps_of_filters; step < of.steps(size);
         step += Traits::warps_of_outputs) {
      unsigned a[fragments][4];
      int const output = step * depth;
      if constexpr (size == 2) {
        COSMATI_UNROLL
        for (int f = 0; f < fragments; ++f)
          arch::load_matrices<true>(a[f], filters_of_warp + f * 32 + lane / 8 % 2 * 16 +
                                              (output + lane / 16 * 8 + lane % 8) * Traits::pitch);
      } else {
        COSMATI_UNROLL
        for (int f = 0; f < fragments; ++f) {
          COSMATI_UNROLL
          for (int i = 0; i < 4; ++i)
            a[f][i] = arch::load<unsigned>(filters_of_warp + (f * 16 + i % 2 * 8 + g) * size +
                                           (output + i / 2 * 4 + t) * Traits::pitch);
        }
      }
      add_taps(tile, output, zeros, patch, a, sum);
      COSMATI_UNROLL
      for (int f = 0; f < fragments; ++f)
        arch::multiply_matrices<Element, Element>(sum[f][tiles], a[f], ones);
    }
  }

  // Adds the products of a step's outputs for all taps.
  COSMATI_DEVICE void add_taps(SmallCTile const& tile, int output, unsigned char const* zeros,
                               unsigned char const* patch, unsigned const (&a)[fragments][4],
                               Sums& sum) const {
    int const lane = arch::thread() % 32, g = lane / 4, t = lane % 4, count = of.tiles();
    if constexpr (size == 2) {
      Window const own = window_of(tile, output + lane % 16, patch, zeros);
      COSMATI_UNROLL
      for (int first = 0; first < tiles; first += 2) {  // two tiles of columns at once
        if (first >= count) break;
        int const mine = first + lane / 16 < count ? first + lane / 16 : first;
        unsigned both[4];
        arch::load_matrices<true>(both, own.at(offset_of_tile(mine)));
        COSMATI_UNROLL
        for (int i = 0; i < 2; ++i) {
          if (first + i < tiles) add_tile(first + i, a, {both[2 * i], both[2 * i + 1]}, sum);
        }
      }
    } else {
      Window const low = window_of(tile, output + t, patch, zeros),
                   high = window_of(tile, output + 4 + t, patch, zeros);
      COSMATI_UNROLL
      for (int own = 0; own < tiles; ++own) {
        if (own >= count) break;
        int const offset = offset_of_tile(own);
        add_tile(own, a,
                 {arch::load<unsigned>(low.at(offset) + g * size),
                  arch::load<unsigned>(high.at(offset) + g * size)},
                 sum);
      }
    }
  }
  COSMATI_DEVICE static void add_tile(int tile, unsigned const (&a)[fragments][4], unsigned const (&b)[2],
                                      Sums& sum) {
    COSMATI_UNROLL
    for (int f = 0; f < fragments; ++f) arch::multiply_matrices<Element, Element>(sum[f][tile], a[f], b);
  }
  // Four bytes of ones, or of zeros.
  COSMATI_DEVICE static unsigned ones_of(bool one) {
    Vector<Element, 4 / size> value{};
    COSMATI_UNROLL
    for (int i = 0; i < 4 / size; ++i) value[i] = one ? arch::number_cast<Element>(1.0F) : Element{};
    return __builtin_bit_cast(unsigned, value);
  }

  // Adds the sums of the warps of the same filters in order, and writes them to the block's partials.
  COSMATI_DEVICE void write(Sums const& sum, float* shared, float* partials) const {
    constexpr int line = Traits::columns + 8;
    int const lane = arch::thread() % 32, warp = arch::thread() / 32;
    for (int turn = 0; turn < Traits::warps_of_outputs; ++turn) {
      arch::block_barrier();
      if (warp / Traits::warps_of_filters != turn) continue;
      COSMATI_UNROLL
      for (int f = 0; f < fragments; ++f) {
        COSMATI_UNROLL
        for (int tile = 0; tile <= tiles; ++tile) {
          COSMATI_UNROLL
          for (int half = 0; half < 2; ++half) {
            int const filter = (warp % Traits::warps_of_filters * fragments + f) * 16 + half * 8 + lane / 4;
            float* const to = shared + filter * line + tile * 8 + lane % 4 * 2;
            COSMATI_UNROLL
            for (int i = 0; i < 2; ++i) to[i] = (turn == 0 ? 0.0F : to[i]) + sum[f][tile][half * 2 + i];
          }
        }
      }
    }
    arch::block_barrier();
    for (int i = arch::thread(); i < Traits::filters * Traits::columns; i += Traits::threads) {
      int const filter = i / Traits::columns;
      partials[i] = shared[filter * line + i - filter * Traits::columns];
    }
  }
};

// Grid: (blocks that share the tiles, bands of filters, bands of rows of taps). A block loads its next tile
// while it multiplies. Dynamic shared memory: shape.shared_bytes().
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
wgrad_small_c_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = WgradSmallC<Traits>;
  WgradSmallCArguments const& all = params.all;
  WgradSmallCShape const of = Traits::shape(all);
  int const taps_before = arch::block_z() * of.tile.rows.taps;
  Block const block{{all.window, of.tile, taps_before}, all, of, arch::block_y() * Traits::filters};
  unsigned char* const zeros = arch::shared_storage<typename Traits::SharedStorage>().bytes();
  unsigned char* patch = zeros + WgradSmallCShape::zero_bytes;
  unsigned char* gradient = patch + 2 * of.tile.patch_bytes(Block::size);
  int other_patch = of.tile.patch_bytes(Block::size), other_gradient = of.gradient_bytes(Block::size);
  typename Block::Pixels pixel;
  typename Block::Sums sum = {};
  int number = arch::block_x();
  if (arch::thread() < WgradSmallCShape::zero_bytes / 4) arch::store(zeros + arch::thread() * 4, 0u);
  if (number < all.window.tiles) {
    SmallCTile const tile(all.window, of.tile, number);
    block.load_gradient(tile, gradient);
    block.load_patch(tile, pixel, patch);
    block.keep_patch(pixel, patch);
  }
  COSMATI_NO_UNROLL
  while (number < all.window.tiles) {
    SmallCTile const tile(all.window, of.tile, number);
    number += arch::grid_x();
    arch::wait_copies<0>();
    arch::block_barrier();
    SmallCTile const next(all.window, of.tile, number);
    if (number < all.window.tiles) {
      block.load_gradient(next, gradient + other_gradient);
      block.load_patch(next, pixel, patch + other_patch);
    }
    block.multiply(tile, zeros, patch, gradient, sum);
    patch += other_patch, gradient += other_gradient;
    other_patch = -other_patch, other_gradient = -other_gradient;
    if (number < all.window.tiles) block.keep_patch(pixel, patch);
  }
  constexpr Index area = Traits::filters * Traits::columns;
  Index const bands = (all.window.filters + Traits::filters - 1) / Traits::filters;
  Index const at = (arch::block_x() * bands + arch::block_y()) * all.tap_bands + arch::block_z();
  block.write(sum, reinterpret_cast<float*>(zeros), arch::as_global(all.partials) + at * area);
}

}  // namespace cosmati
