// Fragments of the f64 tensor cores, read by 16-byte accesses from the same tiles as single-thread
// multiplies. The mapping of the instruction's rows, columns and depths to the tile is free as long as its
// three operands agree, so
// - rows g and g + 8 of the instruction are the adjacent rows 2 g and 2 g + 1 of the tile;
// - columns c of two adjacent products are the adjacent columns 2 c and 2 c + 1, so that a thread's sums are
// four adjacent elements of a row;
// - depths t of two consecutive products are the depths 2 t and 2 t + 1: lanes that are served together then
// access different banks (a row of a tile is 16 bytes longer than its elements).
#pragma once
#include "cosmati/arch/double_matrix.h"
#include "cosmati/arch/memory.h"
#include "cosmati/tile/accumulators.h"
#include "cosmati/tile/partition.h"

namespace cosmati {

template <int warp_m, int warp_n>
struct DoubleFragments {
  double a[warp_m / 16][2];  // (16 rows, rows of this lane)
  double b[warp_n / 8];      // (8 columns)
};

// Sums of a warp's tile: row i and column j of this thread are get(i, j).
template <int rows_, int columns_>
struct DoubleAccumulators {
  using Sum = double;
  using Register = double;
  static constexpr int rows = rows_, columns = columns_, registers = rows_ * columns_;
  double value[rows / 2][columns / 2][4] = {};  // (16 rows, 8 columns, registers of the instruction)

  COSMATI_DEVICE double get(int i, int j) const {
    return value[i / 2][j / 4 * 2 + j % 2][i % 2 * 2 + j % 4 / 2];
  }
  template <class Fragment>
  COSMATI_DEVICE void add_product(Fragment const& fragment) {
    for_each_product<rows / 2, columns / 2>(
        [&](int i, int j) { arch::multiply_matrices(value[i][j], fragment.a[i], fragment.b[j]); });
  }
  template <class Visit>
  COSMATI_DEVICE void for_each(Visit&& visit) {
    COSMATI_UNROLL
    for (int i = 0; i < rows / 2; ++i) {
      COSMATI_UNROLL
      for (int j = 0; j < columns / 2; ++j) {
        COSMATI_UNROLL
        for (int r = 0; r < 4; ++r) visit(value[i][j][r]);
      }
    }
  }
  COSMATI_DEVICE static void add(double& sum, double more) { sum += more; }
};

// Returns the depth that lane t of four reads for pack `pack` of four depths.
COSMATI_CONSTEXPR int double_depth(int pack, int t) { return pack / 2 * 8 + 2 * t + pack % 2; }

template <int warp_m, int warp_n, class TileA, class TileB>
COSMATI_DEVICE void read_double_fragment(DoubleFragments<warp_m, warp_n>& fragment, TileA const& a,
                                         TileB const& b, int pack, ThreadPlace const& place) {
  using Pair = Vector<double, 2>;
  int const depth = double_depth(pack, place.lane_n), own = 2 * place.lane_m;
  COSMATI_UNROLL
  for (int j = 0; j < warp_n / 16; ++j) {
    auto const pair = arch::load<Pair>(&b.pack[depth][place.warp_n * warp_n + j * 16 + own]);
    fragment.b[2 * j] = pair[0], fragment.b[2 * j + 1] = pair[1];
  }
  COSMATI_UNROLL
  for (int i = 0; i < warp_m / 16; ++i) {
    auto const pair = arch::load<Pair>(&a.pack[depth][place.warp_m * warp_m + i * 16 + own]);
    fragment.a[i][0] = pair[0], fragment.a[i][1] = pair[1];
  }
}

}  // namespace cosmati
