// The transforms of a filter gradient by Winograd's convolution: tiles of dy take the place of filters, and
// the sums over all tiles become taps. Tiles of x are transformed as for results (winograd.h).
#pragma once
#include "cosmati/conv/winograd/winograd.h"

namespace cosmati {

// Transforms tiles of dy: G dy G^T, with zeros outside the image.
template <WinogradGradientPolicy policy, class From_, class To_>
struct WinogradGradientTraits {
  static constexpr int tile = policy.tile;
  static constexpr bool channels_last = policy.channels_last;
  using From = From_;
  using To = To_;
};
template <class Traits>
COSMATI_KERNEL(winograd_threads, 4)
winograd_gradient_kernel(COSMATI_PARAMETER WinogradGradientParameters params) {
  constexpr int tile = Traits::tile;
  using Matrices = WinogradMatrices<tile>;
  constexpr int size = Matrices::size;
  WinogradPlace const at = winograd_place<1>(params.to);
  if (!exists(params.to, at)) return;
  int const channel = Traits::channels_last ? at.place : at.line;
  Digits const digits = params.tiles.extents.digits(Traits::channels_last ? at.line : at.place);
  int const row = params.tiles.down(digits), column = params.tiles.right(digits);
  Index const first = params.tiles.offset(digits) + channel * params.channel_stride +
                      row * params.row_stride + column * params.column_stride;
  float half[size][tile][1] = {};
  COSMATI_UNROLL
  for (int q = 0; q < tile; ++q) COSMATI_UNROLL
  for (int p = 0; p < tile; ++p) {
    bool const inside = row + p < params.rows && column + q < params.columns;
    float value[1];
    Traits::From::load(params.gradient, params.type, first + p * params.row_stride + q * params.column_stride,
                       inside ? 1 : 0, value);
    COSMATI_UNROLL
    for (int i = 0; i < size; ++i)
      add_product(static_cast<float>(Matrices::gradient(i, p)), value, half[i][q]);
  }
  Index const to = at.line * params.to.pitch + at.place;
  COSMATI_UNROLL
  for (int i = 0; i < size; ++i) COSMATI_UNROLL
  for (int j = 0; j < size; ++j) {
    float sum[1] = {};
    COSMATI_UNROLL
    for (int q = 0; q < tile; ++q) add_product(static_cast<float>(Matrices::gradient(j, q)), half[i][q], sum);
    Traits::To::store(params.to.data, params.to.type, (i * size + j) * params.to.matrix_pitch + to, sum);
  }
}

// Adds the sums of the slices and transforms them to taps: A m A^T; applies the epilogue and stores the
// gradient.
template <WinogradTapsPolicy policy, class Epilogue_, class Destination_>
struct WinogradTapsTraits {
  static constexpr int tile = policy.tile;
  static constexpr bool swapped = policy.swapped;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = WinogradTapsParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
};
template <class Traits>
COSMATI_KERNEL(winograd_threads, 4)
winograd_taps_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Matrices = WinogradMatrices<Traits::tile>;
  constexpr int size = Matrices::size, taps = Matrices::taps;
  WinogradPlace const at = winograd_place<1>(params.from);
  if (!exists(params.from, at)) return;
  Index const first = at.line * params.from.pitch + at.place;
  float sum[taps][taps][1] = {};
  COSMATI_UNROLL
  for (int j = 0; j < size; ++j) {
    float total[size][1] = {};
    COSMATI_NO_UNROLL
    for (int part = 0; part < params.parts; ++part) {
      COSMATI_UNROLL
      for (int i = 0; i < size; ++i) {
        float value[1];
        WinogradElements<float>::load(
            params.from.data, DataType::f32,
            part * params.part_stride + (i * size + j) * params.from.matrix_pitch + first, 1, value);
        total[i][0] += value[0];
      }
    }
    COSMATI_UNROLL
    for (int r = 0; r < taps; ++r) {
      float half[1] = {};
      COSMATI_UNROLL
      for (int i = 0; i < size; ++i) add_product(Matrices::tap(r, i), total[i], half);
      COSMATI_UNROLL
      for (int s = 0; s < taps; ++s) add_product(Matrices::tap(s, j), half, sum[r][s]);
    }
  }
  COSMATI_UNROLL
  for (int r = 0; r < taps; ++r) COSMATI_UNROLL
  for (int s = 0; s < taps; ++s) {
    int const number = at.place * params.channel_number + r * params.row_number + s * params.column_number;
    store_weight<Traits>(params, Traits::swapped, 0, at.line, number, sum[r][s][0]);
  }
}

}  // namespace cosmati
