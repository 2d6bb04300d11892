// WMMA fragments: a warp's operands for one step of the instruction along k, and its sums.
#pragma once
#include "cosmati/arch/wmma.h"
#include "cosmati/tile/accumulators.h"
#include "cosmati/tile/padded_tile.h"

namespace cosmati {

template <class Element_, Along along_a, Along along_b, int warp_m, int warp_n>
struct WmmaFragments {
  using Element = Element_;
  static constexpr arch::WmmaShape shape = arch::wmma_shape<Element>;
  static constexpr bool a_by_depth = along_a == Along::k, b_by_depth = along_b == Along::k;
  arch::WmmaOperand<Element> a[warp_m / shape.m];
  arch::WmmaOperand<Element> b[warp_n / shape.n];

  // Reads the fragments of the warp whose tile begins at (first_m, first_n), at depth `pack` of the step.
  template <class TileA, class TileB>
  COSMATI_DEVICE void read(TileA const& tile_a, TileB const& tile_b, int pack, int first_m, int first_n) {
    COSMATI_UNROLL
    for (int i = 0; i < warp_m / shape.m; ++i)
      arch::load_wmma<true, a_by_depth, TileA::stride>(a[i],
                                                       tile_a.at(first_m + i * shape.m, pack * shape.k));
    COSMATI_UNROLL
    for (int j = 0; j < warp_n / shape.n; ++j)
      arch::load_wmma<false, b_by_depth, TileB::stride>(b[j],
                                                        tile_b.at(first_n + j * shape.n, pack * shape.k));
  }
};

// The sums of a warp's tile. There is no get(row, column), since the layout of a fragment is unspecified.
template <class Element, class Sum_, int warp_m, int warp_n>
struct WmmaAccumulators {
  using Sum = Sum_;
  using Fragment = arch::WmmaSums<Sum>;
  using Register = typename Fragment::Register;
  static constexpr arch::WmmaShape shape = arch::wmma_shape<Element>;
  static constexpr int rows = warp_m / shape.m, columns = warp_n / shape.n;
  static constexpr int registers = rows * columns * Fragment::registers;
  Fragment value[rows][columns];

  template <class Operands>
  COSMATI_DEVICE void add_product(Operands const& operands) {
    for_each_product<rows, columns>([&](int i, int j) {
      arch::multiply_wmma<Element, Operands::a_by_depth, Operands::b_by_depth>(value[i][j], operands.a[i],
                                                                               operands.b[j]);
    });
  }
  template <class Visit>
  COSMATI_DEVICE void for_each(Visit&& visit) {
    COSMATI_UNROLL
    for (int i = 0; i < rows; ++i) {
      COSMATI_UNROLL
      for (int j = 0; j < columns; ++j) {
        COSMATI_UNROLL
        for (int r = 0; r < Fragment::registers; ++r) visit(value[i][j].value[r]);
      }
    }
  }
  // Adds one register of equal fragments.
  COSMATI_DEVICE static void add(Register& sum, Register more) {
    if constexpr (is_same<Sum, f16>)
      Accumulators<Multiply::half2, f16, 1, 2>::add(sum, more);
    else
      sum += more;
  }
  // Stores row `i` of fragments to shared memory, with lines `stride` elements apart.
  template <int stride>
  COSMATI_DEVICE void store_row(int i, Sum* to) const {
    COSMATI_UNROLL
    for (int j = 0; j < columns; ++j) arch::store_wmma<Element, stride>(to + j * shape.n, value[i][j]);
  }
};

}  // namespace cosmati
