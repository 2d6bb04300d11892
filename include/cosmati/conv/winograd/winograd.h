// The transforms of Winograd's convolution (Lavin and Gray 2016): from filters and tiles of the image to the
// factors of a batch of matrix products, which gemm/ computes, and from its sums to results.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/winograd/winograd_arguments.h"
#include "cosmati/conv/winograd/winograd_matrices.h"
#include "cosmati/conv/winograd/winograd_policy.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// Loads and stores elements of a compile-time type. With width > 1, full runs are aligned.
template <class Element>
struct WinogradElements {
  template <int width>
  COSMATI_DEVICE static void load(void const* data, DataType, Index at, int valid, float (&to)[width]) {
    Element const* const from = arch::as_global(static_cast<Element const*>(data)) + at;
    if (valid == width) {
      auto const run = arch::load_constant<Vector<Element, width>>(from);
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i) to[i] = arch::number_cast<float>(run[i]);
    } else {
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i)
        to[i] = i < valid ? arch::number_cast<float>(arch::load_constant<Element>(from + i)) : 0.0f;
    }
  }
  template <int width>
  COSMATI_DEVICE static void store(void* data, DataType, Index at, float const (&from)[width]) {
    Vector<Element, width> run;
    COSMATI_UNROLL
    for (int i = 0; i < width; ++i) run[i] = arch::number_cast<Element>(from[i]);
    arch::store_global(arch::as_global(static_cast<Element*>(data)) + at, run);
  }
};

// The position of a thread in a matrix: the first of `width` elements of a line.
struct WinogradPlace {
  int line, place;
};
template <int width>
COSMATI_DEVICE WinogradPlace winograd_place(WinogradMatrix const& matrix) {
  int const lanes = 1 << matrix.log2_lanes, others = winograd_threads >> matrix.log2_lanes;
  int const lines = matrix.blocks_of_line.quotient(arch::block_x());
  int const block_of_line = arch::block_x() - lines * matrix.blocks_of_line.divisor;
  return {lines * others + (arch::thread() >> matrix.log2_lanes),
          (block_of_line * lanes + (arch::thread() & (lanes - 1))) * width};
}
COSMATI_DEVICE bool exists(WinogradMatrix const& matrix, WinogradPlace const& at) {
  return at.line < matrix.lines && at.place < matrix.places;
}

// sum += factor * value; generates no code for a compile-time factor of 0.
template <int width>
COSMATI_DEVICE void add_product(float factor, float const (&value)[width], float (&sum)[width]) {
  if (factor == 0) return;
  COSMATI_UNROLL
  for (int i = 0; i < width; ++i) sum[i] = arch::multiply_add(factor, value[i], sum[i]);
}

// Transforms a part of the filters: G g G^T. The grid of all these kernels is ceil(blocks_of_line * lines /
// (other threads)), their block winograd_threads.
template <WinogradFilterPolicy policy, class From_, class To_>
struct WinogradFilterTraits {
  using Matrices = WinogradMatrices<policy.tile, policy.taps>;
  using From = From_;
  using To = To_;
};
template <class Traits>
COSMATI_KERNEL(winograd_threads, 4)
winograd_filter_kernel(COSMATI_PARAMETER WinogradFilterParameters params) {
  using Matrices = typename Traits::Matrices;
  constexpr int size = Matrices::size, taps = Matrices::taps;
  WinogradPlace const at = winograd_place<1>(params.to);
  if (!exists(params.to, at)) return;
  Index const first = at.line * params.line_stride + at.place * params.place_stride;
  float half[size][taps][1] = {};
  COSMATI_UNROLL
  for (int s = 0; s < taps; ++s) COSMATI_UNROLL
  for (int r = 0; r < taps; ++r) {
    float tap[1];
    Traits::From::load(params.filter, params.type, first + r * params.row_stride + s * params.column_stride,
                       r < params.rows && s < params.columns ? 1 : 0, tap);
    COSMATI_UNROLL
    for (int i = 0; i < size; ++i) add_product(static_cast<float>(Matrices::filter(i, r)), tap, half[i][s]);
  }
  Index const to = at.line * params.to.pitch + at.place;
  COSMATI_UNROLL
  for (int i = 0; i < size; ++i) COSMATI_UNROLL
  for (int j = 0; j < size; ++j) {
    float sum[1] = {};
    COSMATI_UNROLL
    for (int s = 0; s < taps; ++s) add_product(static_cast<float>(Matrices::filter(j, s)), half[i][s], sum);
    Traits::To::store(params.to.data, params.to.type, (i * size + j) * params.to.matrix_pitch + to, sum);
  }
}

// Transforms tiles of the image: B d B^T, with zeros outside the image.
template <WinogradImagePolicy policy, class From_, class To_>
struct WinogradImageTraits {
  static_assert(policy.channels_last || policy.channels == 1);
  using Matrices = WinogradMatrices<policy.tile, policy.taps>;
  static constexpr int channels = policy.channels;
  static constexpr bool channels_last = policy.channels_last, together = policy.together;
  using From = From_;
  using To = To_;
};
template <class Traits>
COSMATI_KERNEL(winograd_threads, Traits::Matrices::size < 8 ? 4 : 3)
winograd_image_kernel(COSMATI_PARAMETER WinogradImageParameters params) {
  using Matrices = typename Traits::Matrices;
  constexpr int size = Matrices::size, width = Traits::channels;
  WinogradPlace const at = winograd_place<width>(params.to);
  if (!exists(params.to, at)) return;
  int const channel = Traits::channels_last ? at.place : at.line;
  Digits const tile = params.tiles.extents.digits(Traits::channels_last ? at.line : at.place);
  int const valid =
      !Traits::channels_last || params.to.places - channel >= width ? width : params.to.places - channel;
  int const row = params.top + params.tiles.down(tile), column = params.left + params.tiles.right(tile);
  Index const first = params.tiles.offset(tile) + channel * params.channel_stride + row * params.row_stride +
                      column * params.column_stride;
  float half[size][size][width] = {};
  COSMATI_UNROLL
  for (int j = 0; j < size; ++j) {
    bool const across = static_cast<unsigned>(column + j) < static_cast<unsigned>(params.width);
    float value[size][width];
    COSMATI_UNROLL
    for (int i = 0; i < size; ++i) {
      bool const inside = across && static_cast<unsigned>(row + i) < static_cast<unsigned>(params.height);
      Index const from = first + i * params.row_stride + j * params.column_stride;
      if constexpr (Traits::together || width == 1) {
        Traits::From::load(params.image, params.type, from, inside ? valid : 0, value[i]);
      } else {
        COSMATI_UNROLL
        for (int c = 0; c < width; ++c) {
          float one[1];
          Traits::From::load(params.image, params.type, from + c * params.channel_stride, inside && c < valid,
                             one);
          value[i][c] = one[0];
        }
      }
    }
    COSMATI_UNROLL
    for (int i = 0; i < size; ++i) COSMATI_UNROLL
    for (int k = 0; k < size; ++k) add_product(Matrices::input(i, k), value[k], half[i][j]);
  }
  Index const to = at.line * params.to.pitch + at.place;
  COSMATI_UNROLL
  for (int i = 0; i < size; ++i) COSMATI_UNROLL
  for (int j = 0; j < size; ++j) {
    float sum[width] = {};
    COSMATI_UNROLL
    for (int k = 0; k < size; ++k) add_product(Matrices::input(j, k), half[i][k], sum);
    Traits::To::store(params.to.data, params.to.type, (i * size + j) * params.to.matrix_pitch + to, sum);
  }
}

// Transforms sums: A m A^T; applies the epilogue and stores the results.
template <WinogradResultPolicy policy, class Epilogue_, class Destination_>
struct WinogradResultTraits {
  using Matrices = WinogradMatrices<policy.tile, policy.taps>;
  static constexpr int tile = policy.tile;
  static constexpr WinogradRun run = policy.run;
  static constexpr bool channels_last = run == WinogradRun::channels;
  static constexpr int channels = channels_last ? winograd_channels(Matrices::size) : 1;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = WinogradResultParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
};

// Stores `count` contiguous results starting at (m, n), of which `valid` exist.
template <class Traits, int count>
COSMATI_DEVICE void winograd_store(typename Traits::Params const& params, int m, int n, int valid,
                                   float const (&sum)[count]) {
  using Real = typename Traits::Epilogue::Real;
  Real value[count];
  COSMATI_UNROLL
  for (int i = 0; i < count; ++i) value[i] = arch::number_cast<Real>(sum[i]);
  typename Traits::Epilogue::Tile const tile(params.epilogue, 0, m, n);
  Traits::Epilogue::apply(tile, 0, 0, valid, value);
  typename Traits::Destination::Tile const d(params.d, 0, m, n);
  d.store(0, 0, valid, value);
}

template <class Traits>
COSMATI_KERNEL(winograd_threads, 4)
winograd_result_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  constexpr int tile = Traits::tile, width = Traits::channels;
  using Matrices = typename Traits::Matrices;
  constexpr int size = Matrices::size;
  WinogradPlace const at = winograd_place<width>(params.from);
  if (!exists(params.from, at)) return;
  Index const first = at.line * params.from.pitch + at.place;
  float sum[tile][tile][width] = {};
  COSMATI_UNROLL
  for (int j = 0; j < size; ++j) {
    float half[tile][width] = {};
    COSMATI_UNROLL
    for (int i = 0; i < size; ++i) {
      float value[width];
      WinogradElements<float>::load(params.from.data, DataType::f32,
                                    (i * size + j) * params.from.matrix_pitch + first, width, value);
      COSMATI_UNROLL
      for (int p = 0; p < tile; ++p) add_product(Matrices::output(p, i), value, half[p]);
    }
    COSMATI_UNROLL
    for (int p = 0; p < tile; ++p) COSMATI_UNROLL
    for (int q = 0; q < tile; ++q) add_product(Matrices::output(q, j), half[p], sum[p][q]);
  }
  int const channel = Traits::channels_last ? at.place : at.line;
  Digits const digits = params.tiles.extents.digits(Traits::channels_last ? at.line : at.place);
  int const row = params.tiles.down(digits), column = params.tiles.right(digits);
  int const pixel = params.first_pixel + static_cast<int>(params.tiles.offset(digits)) +
                    row * params.row_number + column * params.column_number;
  int const columns = params.columns - column < tile ? params.columns - column : tile;
  COSMATI_UNROLL
  for (int p = 0; p < tile; ++p) {
    if (row + p >= params.rows) break;
    int const here = pixel + p * params.row_number;
    if constexpr (Traits::run == WinogradRun::columns) {
      float line[tile];
      COSMATI_UNROLL
      for (int q = 0; q < tile; ++q) line[q] = sum[p][q][0];
      winograd_store<Traits>(params, channel, here, columns, line);
    } else {
      COSMATI_UNROLL
      for (int q = 0; q < tile; ++q) {
        if (q >= columns) break;
        int const there = here + q * params.column_number;
        int const channels = params.from.places - channel < width ? params.from.places - channel : width;
        if constexpr (Traits::channels_last)
          winograd_store<Traits>(params, there, channel, channels, sum[p][q]);
        else
          winograd_store<Traits>(params, channel, there, 1, sum[p][q]);
      }
    }
  }
}

}  // namespace cosmati
