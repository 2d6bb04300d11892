// Tensor core fragments: the operands of a warp for 32 bytes of depth, and its sums.
#pragma once
#include "cosmati/arch/matrix.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/tile/accumulators.h"
#include "cosmati/tile/partition.h"
#include "cosmati/tile/swizzled_tile.h"

namespace cosmati {

template <class ElementA_, class ElementB_, int warp_m, int warp_n>
struct MatrixFragments {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  unsigned a[warp_m / 16][4];
  unsigned b[warp_n / 8][2];
};

// mma.sync assigns to a thread rows g and g + 8 of every 16, and columns 2 t and 2 t + 1 of every 8
// (arch/matrix.h): LinePartition's interleaved runs of one row by 8 lanes, of two columns by 4.
COSMATI_CONSTEXPR ThreadPlace matrix_place(int thread, int warps_m) {
  int const warp = thread / 32, lane = thread % 32;
  return {warp % warps_m, warp / warps_m, lane / 4, lane % 4};
}

// Sums of a warp's tile in the layout of mma.sync: value[i][j] is row i and column j of this thread.
template <class Sum_, int rows_, int columns_>
struct MatrixAccumulators : Accumulators<Multiply::fma, Sum_, rows_, columns_> {
  template <class Fragment>
  COSMATI_DEVICE void add_product(Fragment const& fragment) {
    COSMATI_UNROLL
    for (int i = 0; i < rows_ / 2; ++i) {
      COSMATI_UNROLL
      for (int j = 0; j < columns_ / 2; ++j) {
        Sum_* const upper = &this->value[2 * i][2 * j];
        Sum_* const lower = &this->value[2 * i + 1][2 * j];
        Sum_ d[4] = {upper[0], upper[1], lower[0], lower[1]};
        arch::multiply_matrices<typename Fragment::ElementA, typename Fragment::ElementB>(d, fragment.a[i],
                                                                                          fragment.b[j]);
        upper[0] = d[0], upper[1] = d[1], lower[0] = d[2], lower[1] = d[3];
      }
    }
  }
};

// f16 sums, two adjacent columns per register, as for half2.
template <int rows_, int columns_>
struct MatrixAccumulators<f16, rows_, columns_> : Accumulators<Multiply::half2, f16, rows_, columns_> {
  template <class Fragment>
  COSMATI_DEVICE void add_product(Fragment const& fragment) {
    COSMATI_UNROLL
    for (int i = 0; i < rows_ / 2; ++i) {
      COSMATI_UNROLL
      for (int j = 0; j < columns_ / 2; ++j) {
        arch::HalfPair d[2] = {this->value[2 * i][j], this->value[2 * i + 1][j]};
        arch::multiply_matrices<typename Fragment::ElementA, typename Fragment::ElementB>(d, fragment.a[i],
                                                                                          fragment.b[j]);
        this->value[2 * i][j] = d[0], this->value[2 * i + 1][j] = d[1];
      }
    }
  }
};

// Reads a block of 16 outer positions from `first_outer` by the 32 bytes of depth from `pack`, as four 8 x 8
// matrices in the order of mma's A (outer first) or of two adjacent columns of B (depth first).
template <bool is_a, class Tile>
COSMATI_DEVICE void read_matrices(unsigned (&to)[4], Tile const& tile, int first_outer, int pack) {
  using Element = typename Tile::Element;
  constexpr int size = static_cast<int>(sizeof(Element));
  int const lane = arch::thread() % 32;
  int const outer_block = is_a ? lane / 8 % 2 : lane / 16, depth_block = is_a ? lane / 16 : lane / 8 % 2;
  if constexpr (Tile::along == Along::k) {
    arch::load_matrices<false>(
        to, tile.at(first_outer + outer_block * 8 + lane % 8, pack * 32 + depth_block * 16));
  } else if constexpr (size == 2) {
    arch::load_matrices<true>(
        to, tile.at(pack * 16 + depth_block * 8 + lane % 8, (first_outer + outer_block * 8) * size));
  } else {
    static_assert(size == 4, "mma reads 8-bit operands only if they are K-major");
    COSMATI_UNROLL
    for (int r = 0; r < 4; ++r) {
      int const outer = is_a ? r % 2 : r / 2, depth = is_a ? r / 2 : r % 2;
      to[r] =
          arch::load<unsigned>(tile.at(first_outer + outer * 8 + lane / 4, pack * 8 + depth * 4 + lane % 4));
    }
  }
}

template <class Fragment, class TileA, class TileB, int warp_m, int warp_n>
COSMATI_DEVICE void read_matrix_fragment(Fragment& fragment, TileA const& a, TileB const& b, int pack,
                                         ThreadPlace const& place) {
  COSMATI_UNROLL
  for (int i = 0; i < warp_m / 16; ++i)
    read_matrices<true>(fragment.a[i], a, place.warp_m * warp_m + i * 16, pack);
  COSMATI_UNROLL
  for (int j = 0; j < warp_n / 16; ++j) {
    unsigned pair[4];
    read_matrices<false>(pair, b, place.warp_n * warp_n + j * 16, pack);
    fragment.b[2 * j][0] = pair[0], fragment.b[2 * j][1] = pair[1];
    fragment.b[2 * j + 1][0] = pair[2], fragment.b[2 * j + 1][1] = pair[3];
  }
}

}  // namespace cosmati
