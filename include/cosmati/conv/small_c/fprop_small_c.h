// A forward convolution of images with few channels (the first layer of a network) on tensor cores. A block
// keeps the filter as fragments and the patch of x that a tile reads in shared memory, a few channels per
// pixel. The taps of a row are then adjacent (or at a fixed pitch), so that a row of an mma's a, which is an
// output, is a run of shared memory, and its depth is the taps of a row and their channels: x is neither
// unrolled nor packed.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/matrix.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/small_c/filter_fragments.h"
#include "cosmati/conv/small_c/patch.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise only its place, how it is filled, and its numbers of
// warps, fragments and bands apply, and whether y is collected.
template <FpropSmallCShape shape_, bool fixed_, class Element_, class Epilogue_, class Destination_>
struct FpropSmallCTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = FpropSmallCParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool fixed = fixed_;
  static constexpr int threads = shape_.threads(), blocks = shape_.blocks, fragments = shape_.fragments;
  static constexpr int place = shape_.place, bands = shape_.bands;
  static constexpr bool async = shape_.async, collects = shape_.result_bytes > 0;
  static constexpr int pixels = async ? 1 : fixed ? shape_.pixels() : unfixed_fprop_pixels;
  COSMATI_DEVICE static FpropSmallCShape shape(FpropSmallCArguments const& window) {
    if constexpr (fixed) return shape_;
    return window.shape;
  }

  // The filter, then the patches and the results: shape.shared_bytes() in total.
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
  static constexpr int run = SmallCFilter<Traits>::run, tiles = SmallCFilter<Traits>::tiles;
  using Sums = float[Traits::fragments][tiles][4];
  using Fragment = Vector<unsigned, 2>;  // one lane's part of a filter fragment

  SmallCFilter<Traits> filter;
  unsigned char* results;

  // Four bytes of a row of taps, of which `rest` remain; those beyond are zeros.
  COSMATI_DEVICE static unsigned word_of(unsigned char const* at, int rest) {
    if constexpr (!Patch::flat) return rest > 0 ? arch::load<unsigned>(at) : 0;
    unsigned const low = rest > 0 ? arch::load<unsigned short>(at) : 0;
    return low | (rest > size ? unsigned{arch::load<unsigned short>(at + size)} << 16 : 0);
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
    unsigned char const* taps = filter.fragments + lane * 8;
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
            a[f][i] = word_of(patch + first[f][i % 2] + byte + padding, row_bytes - byte - word);
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
          int const n = filter.first + band * FpropSmallCShape::band + lane % 4 * run;
          int const valid = window.filters - n < run ? window.filters - n : run;
          if (valid <= 0) continue;
          Real value[run];
          COSMATI_UNROLL
          for (int i = 0; i < run; ++i)
            value[i] = arch::number_cast<Real>(sum[f][band * 4 + i / 2][half * 2 + i % 2]);
          typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, m, n);
          Traits::Epilogue::apply(epilogue, 0, 0, valid, value);
          if constexpr (Traits::collects) {
            using Result = typename Traits::Destination::Element;
            auto* const to = reinterpret_cast<Result*>(results) + output * window.filters + n;
            COSMATI_UNROLL
            for (int i = 0; i < run; ++i)
              if (i < valid) to[i] = arch::number_cast<Result>(value[i]);
          } else {
            typename Traits::Destination::Tile const d(params.d, 0, m, n);
            d.store(0, 0, valid, value);
          }
        }
      }
    }
    if constexpr (Traits::collects) {
      arch::block_barrier();
      if constexpr (requires { params.d.data; })
        store_collected(params.d.data, tile);
      else
        store_collected(params.d.digits.data, tile);  // in the emulator
    }
  }

  // Stores a tile of y whose pixels are in shared memory, adjacent as in y.
  COSMATI_DEVICE void store_collected(void* y, SmallCTile const& tile) const {
    using Word = Vector<unsigned, 4>;
    auto* const to =
        arch::as_global(static_cast<unsigned char*>(y)) + Index{tile.column} * shape.result_bytes;
    int const rest = window.width - tile.column, outputs = rest < shape.outputs() ? rest : shape.outputs();
    int const bytes = outputs * shape.result_bytes, words = bytes / 16 * 16;
    for (int byte = arch::thread() * 16; byte < words; byte += Traits::threads * 16)
      arch::store_global(to + byte, arch::load<Word>(results + byte));
    for (int byte = words + arch::thread(); byte < bytes; byte += Traits::threads) to[byte] = results[byte];
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
  SmallCFilter<Traits> const filter{window, shape, shared.filter(),
                                    arch::block_y() * Traits::bands * FpropSmallCShape::band};
  Block const block{{window, shape}, filter, shared.filter() + shape.result_offset(Block::size)};
  unsigned char* patch = shared.patches(shape);
  typename Block::Pixels pixel;
  int number = arch::block_x(), other = shape.patch_bytes(Block::size);
  if (number >= window.tiles) return;
  block.load_patch(SmallCTile(window, shape, number), pixel, patch);
  block.filter.load();
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
