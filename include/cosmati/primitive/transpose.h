// y = x where neighbours of x are not neighbours of y: tiles through shared memory, read along x's
// neighbours, written along y's.
#pragma once
#include "cosmati/primitive/traits.h"

namespace cosmati {

// A block has a tile of `side` by `side` elements: 32 runs, each of Traits::width elements.
template <class Traits>
struct TransposeTile {
  static constexpr int side = 32 * Traits::width;
  // (along x, along y); the odd pitch keeps the lanes of a warp in banks of their own.
  struct SharedStorage {
    typename Traits::Real element[side][side + 1];
  };
};

// Axis 0: runs of y's neighbours, axis 1: runs of x's neighbours (both cut into tiles of 32 runs), then the
// others. Strides of axes 0 and 1 are those of elements. `classes`: tiles along axis 0. window[0].image and
// window[1].image: the extents along axes 0 and 1. Grid: (tiles, positions of the other axes).
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
transpose_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  using Real = typename Traits::Real;
  using Tile = TransposeTile<Traits>;
  using From = typename AccessAt<0, typename Traits::Inputs>::type;
  using To = typename AccessAt<0, typename Traits::Outputs>::type;
  constexpr int width = Traits::width, warps = Traits::threads / 32, lines = Tile::side / warps;
  auto& tile = arch::shared_storage<typename Tile::SharedStorage>();
  auto const number = static_cast<unsigned>(arch::block_x());
  unsigned const rest = params.axis[0].quotient(number);  // tiles along axis 0
  unsigned const others = params.axis[1].quotient(rest);
  Place const place(params.axis + 2, Traits::policy(params).kept - 2, others);
  Index const first0 =
      static_cast<Index>(number - rest * static_cast<unsigned>(params.axis[0].divisor)) * Tile::side;
  Index const first1 =
      static_cast<Index>(rest - others * static_cast<unsigned>(params.axis[1].divisor)) * Tile::side;
  PrimitiveTensor const &x = params.tensor[0], &y = params.tensor[primitive_inputs];
  int const warp = arch::thread() / 32, lane = arch::thread() % 32;
  Index const left0 = params.window[0].image - first0, left1 = params.window[1].image - first1;

  Index const from = place.offset(x.stride + 2) + first0 * x.stride[0] + first1 * x.stride[1];
  Index const in1 = left1 - lane * width;  // elements of this lane's run that exist
  int const count1 = in1 < 0 ? 0 : in1 < width ? static_cast<int>(in1) : width;
  Real run[lines][width];
  COSMATI_UNROLL
  for (int i = 0; i < lines; ++i) {
    int const line = warp + i * warps;
    if (line < left0 && count1 > 0)
      From::load(params, x, Run{from + line * x.stride[0] + lane * width * x.stride[1], count1}, run[i]);
  }
  COSMATI_UNROLL
  for (int i = 0; i < lines; ++i) {
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e)
      if (warp + i * warps < left0 && e < count1)
        tile.element[lane * width + e][warp + i * warps] = run[i][e];
  }
  arch::block_barrier();
  Index const to = place.offset(y.stride + 2) + first0 * y.stride[0] + first1 * y.stride[1];
  Index const in0 = left0 - lane * width;
  int const count0 = in0 < 0 ? 0 : in0 < width ? static_cast<int>(in0) : width;
  if (count0 == 0) return;
  COSMATI_UNROLL
  for (int i = 0; i < lines; ++i) {
    int const line = warp + i * warps;
    if (line >= left1) break;
    Real out[width];
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) out[e] = tile.element[line][e < count0 ? lane * width + e : 0];
    To::store(y, Run{to + lane * width * y.stride[0] + line * y.stride[1], count0}, out);
  }
}

}  // namespace cosmati
