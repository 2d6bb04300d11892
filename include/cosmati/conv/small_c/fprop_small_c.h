// A forward convolution of images with few channels (the first layer of a network) on tensor cores. A block
// keeps the filter as fragments and the patch of x that a tile reads in shared memory, a few channels per
// pixel. The taps of a row are then adjacent (or at a fixed pitch), so that a row of an mma's a, which is an
// output, is a run of shared memory, and its depth is the taps of a row and their channels: x is neither
// unrolled nor packed.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/matrix.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/small_c/patch.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise only its place, how it is filled, and its numbers of
// warps, fragments and bands apply.
template <FpropSmallCShape shape_, bool fixed_, class Element_, class Epilogue_, class Destination_>
struct FpropSmallCTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = FpropSmallCParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool fixed = fixed_;
  static constexpr int threads = shape_.threads(), blocks = shape_.blocks, fragments = shape_.fragments;
  static constexpr int place = shape_.place, bands = shape_.bands;
  static constexpr bool async = shape_.async;
  static constexpr int pixels = async ? 1 : fixed ? shape_.pixels() : unfixed_fprop_pixels;
  COSMATI_DEVICE static FpropSmallCShape shape(FpropSmallCArguments const& window) {
    if constexpr (fixed) return shape_;
    return window.shape;
  }

  // The filter, then two patches: shape.shared_bytes() in total.
  struct alignas(16) SharedStorage {
    // (row of taps, step, column tile of an mma, lane), 8 bytes each
    COSMATI_DEVICE unsigned char* filter() { return reinterpret_cast<unsigned char*>(this); }
    COSMATI_DEVICE unsigned char* patches(FpropSmallCShape const& of) {
      return filter() + of.filter_bytes(static_cast<int>(sizeof(Element)));
    }
  };
};

template <class Traits>
struct FpropSmallC : SmallCPatch<Traits> {
  using Patch = SmallCPatch<Traits>;
  using Patch::size, Patch::pixel_bytes, Patch::pitch, Patch::window, Patch::shape;
  using typename Patch::Element;
  static constexpr int per_word = 4 / size, run = 8, tiles = 4 * Traits::bands;
  using Sums = float[Traits::fragments][tiles][4];
  using Fragment = Vector<unsigned, 2>;  // one lane's part of a filter fragment

  unsigned char* filter;
  int first_filter;

  // Fragments in the layout of mma's b: lane 4 * g + t holds, of column g, the four bytes of depth at byte
  // 4 * t and the four at byte 16 + 4 * t. Columns 2 * t and 2 * t + 1 of four adjacent tiles, whose sums
  // lane t has, are eight adjacent filters.
  COSMATI_DEVICE void load_filter() const {
    auto const* const from = arch::as_global(static_cast<Element const*>(window.filter));
    int const steps = shape.steps(size), words = shape.rows.taps * steps * tiles * 64;
    constexpr int together = 4;  // loads in flight
    COSMATI_NO_UNROLL
    for (int first = arch::thread(); first < words; first += together * Traits::threads) {
      Vector<Element, per_word> value[together];
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const word = first + i * Traits::threads, lane = word / 2 % 32, g = lane / 4;
        int const tile = word / 64 % tiles, of_row = word / 64 / tiles, r = of_row / steps;
        int const k = first_filter + tile / 4 * FpropSmallCShape::band + g / 2 * run + tile % 4 * 2 + g % 2;
        int const depth = ((of_row - r * steps) * 32 + word % 2 * 16 + lane % 4 * 4) / size;
        COSMATI_UNROLL
        for (int e = 0; e < per_word; ++e) {
          int const s = (depth + e) / Traits::place, c = (depth + e) % Traits::place;
          bool const exists =
              word < words && s < shape.columns.taps && c < shape.channels && k < window.filters;
          Index const at = k * window.filter_output + c * window.filter_input + r * window.filter_row +
                           s * window.filter_column;
          Element const element = arch::load_constant<Element>(from + (exists ? at : 0));
          value[i][e] = exists ? element : Element{};
        }
      }
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const word = first + i * Traits::threads;
        if (word < words) arch::store(filter + word * 4, value[i]);
      }
    }
  }

  // Adds the products of a tile. Beyond the taps of a row, a is zero rather than what x has there, because
  // infinity times zero is not zero.
  COSMATI_DEVICE void multiply(unsigned char const* patch, Sums& sum) const {
    int const lane = arch::thread() % 32, warp = arch::thread() / 32;
    int const steps = shape.steps(size), row_bytes = shape.row_bytes(size), word = lane % 4 * 4;
    int first[Traits::fragments][2];  // offsets of the windows
    COSMATI_UNROLL
    for (int f = 0; f < Traits::fragments; ++f) {
      COSMATI_UNROLL
      for (int half = 0; half < 2; ++half) {
        int output = (warp * Traits::fragments + f) * 16 + half * 8 + lane / 4;
        if (output >= shape.outputs()) output = shape.outputs() - 1;
        int const row = output / shape.across, column = output - row * shape.across;
        first[f][half] =
            word + (row * shape.rows.stride * shape.patch_columns() + column * shape.columns.stride) * pitch;
      }
    }
    unsigned char const* taps = filter + lane * 8;
    COSMATI_NO_UNROLL
    for (int r = 0; r < shape.rows.taps; ++r) {
      COSMATI_UNROLL
      for (int step = 0; step < steps; ++step) {
        unsigned a[Traits::fragments][4];
        COSMATI_UNROLL
        for (int f = 0; f < Traits::fragments; ++f) {
          COSMATI_UNROLL
          for (int i = 0; i < 4; ++i) {
            int const byte = step * 32 + i / 2 * 16, padding = byte / pixel_bytes * (pitch - pixel_bytes);
            a[f][i] =
                byte + word < row_bytes ? arch::load<unsigned>(patch + first[f][i % 2] + byte + padding) : 0;
          }
        }
        COSMATI_UNROLL
        for (int tile = 0; tile < tiles; ++tile) {
          Fragment const b = arch::load<Fragment>(taps + tile * 256);
          unsigned const both[2] = {b[0], b[1]};
          COSMATI_UNROLL
          for (int f = 0; f < Traits::fragments; ++f)
            arch::multiply_matrices<Element, Element>(sum[f][tile], a[f], both);
        }
        taps += tiles * 256;
      }
      patch += shape.patch_columns() * pitch;
    }
  }

  // Stores a tile of y.
  COSMATI_DEVICE void store(typename Traits::Params const& params, SmallCTile const& tile,
                            Sums const& sum) const {
    using Real = typename Traits::Epilogue::Real;
    int const lane = arch::thread() % 32, warp = arch::thread() / 32;
    COSMATI_UNROLL
    for (int f = 0; f < Traits::fragments; ++f) {
      COSMATI_UNROLL
      for (int half = 0; half < 2; ++half) {
        int const output = (warp * Traits::fragments + f) * 16 + half * 8 + lane / 4;
        int const line = output / shape.across, h = tile.row + line,
                  w = tile.column + output - line * shape.across;
        if (output >= shape.outputs() || h >= window.height || w >= window.width) continue;
        int const m = tile.image * window.number_image + h * window.number_row + w * window.number_column;
        COSMATI_UNROLL
        for (int band = 0; band < Traits::bands; ++band) {
          int const n = first_filter + band * FpropSmallCShape::band + lane % 4 * run;
          int const valid = window.filters - n < run ? window.filters - n : run;
          if (valid <= 0) continue;
          Real value[run];
          COSMATI_UNROLL
          for (int i = 0; i < run; ++i)
            value[i] = arch::number_cast<Real>(sum[f][band * 4 + i / 2][half * 2 + i % 2]);
          typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, m, n);
          Traits::Epilogue::apply(epilogue, 0, 0, valid, value);
          typename Traits::Destination::Tile const d(params.d, 0, m, n);
          d.store(0, 0, valid, value);
        }
      }
    }
  }
};

// Grid: along x at most one block per tile, and each block computes every gridDim.x-th one; along y the
// filters. A block loads the patch of its next tile while it multiplies. Dynamic shared memory:
// SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
fprop_small_c_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = FpropSmallC<Traits>;
  FpropSmallCArguments const& window = params.window;
  FpropSmallCShape const shape = Traits::shape(window);
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  Block const block{
      {window, shape}, shared.filter(), arch::block_y() * Traits::bands * FpropSmallCShape::band};
  unsigned char* patch = shared.patches(shape);
  int const patch_bytes = shape.patch_bytes(Block::size);
  typename Block::Pixels pixel;
  int number = arch::block_x(), other = patch_bytes;
  if (number >= window.tiles) return;
  block.load_patch(SmallCTile(window, shape, number), pixel, patch);
  block.load_filter();
  block.keep_patch(pixel, patch);
  COSMATI_NO_UNROLL
  while (number < window.tiles) {
    SmallCTile const tile(window, shape, number);
    number += arch::grid_x();
    arch::wait_copies<0>();
    arch::block_barrier();
    if (number < window.tiles) block.load_patch(SmallCTile(window, shape, number), pixel, patch + other);
    typename Block::Sums sum = {};
    block.multiply(patch, sum);
    patch += other;
    other = -other;
    if (number < window.tiles) block.keep_patch(pixel, patch);
    block.store(params, tile, sum);
  }
}

}  // namespace cosmati
