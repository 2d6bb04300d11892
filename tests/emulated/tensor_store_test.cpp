// Stores of D by TMA and by staged rows if a warp's columns are not a power of two: all columns are stored.
#include "tests/emulated/warp_specialized_case.h"

namespace cosmati::emulated {
namespace {

constexpr Along outer = Along::mn, depth = Along::k;

// One full tile and a partial one along both dimensions.
template <int width, class Element, class Sum, class Result, Along along = depth>
void expect_columns() {
  using Kernel = Warpgroups<Element, depth, Element, depth, Sum>;
  constexpr WarpgroupTiles tiles{.block_n = width, .warp_n = width};
  Kernel::template expect_product<tiles, TensorDestination<Result, along>>({80, width + 32, 70},
                                                                           {.d = along});
}
template <int width>
void expect_all_types() {
  expect_columns<width, f16, float, f16>();
  expect_columns<width, bf16, float, bf16>();
  expect_columns<width, bf16, float, float>();
  expect_columns<width, s8, s32, s8>();
  expect_columns<width, e4m3, float, e4m3>();
  expect_columns<width, f16, float, f16, outer>();
}

TEST(TensorStore, Columns96) { expect_all_types<96>(); }
TEST(TensorStore, Columns160) { expect_all_types<160>(); }
TEST(TensorStore, Columns192) { expect_all_types<192>(); }

// Slices of 48 and 80 columns, by both kinds of stores.
TEST(TensorStore, SlicesOfATile) {
  using Bf16 = Warpgroups<bf16, depth, bf16, depth, float>;
  constexpr EpilogueSchedule staged = EpilogueSchedule::staged;
  constexpr WarpgroupTiles of_48{.block_n = 96, .warp_n = 96, .cluster_k = 2},
      of_80{.block_n = 160, .warp_n = 160, .cluster_k = 2},
      staged_48{.block_n = 96, .warp_n = 96, .cluster_k = 2, .epilogue = staged},
      staged_40{.block_n = 160, .warp_n = 160, .cluster_k = 4, .epilogue = staged};
  Bf16::expect_product<of_48, TensorDestination<bf16>>({70, 104, 200});
  Bf16::expect_product<of_80, TensorDestination<float>>({70, 168, 200});
  Bf16::expect_product<staged_48, StridedDestination<bf16, 8>>({70, 101, 200});
  Bf16::expect_product<staged_40, StridedDestination<float, 4>>({70, 165, 300});
  Bf16::expect_product<staged_48, StridedDestination<bf16, 1>>({70, 101, 200}, {.d = outer});
}

}  // namespace
}  // namespace cosmati::emulated
