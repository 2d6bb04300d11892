// Products with few rows, streamed through registers: every direction, width and alignment, ragged sizes,
// parts of k, batches.
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

constexpr Size ragged[] = {{1, 1, 1},  {1, 33, 7},   {3, 1, 41},   {4, 35, 0},   {2, 32, 64},
                           {4, 16, 8}, {1, 31, 167}, {3, 65, 259}, {5, 40, 300}, {0, 5, 3}};

// Four rows; `lanes` of a warp share the columns, two warps share k.
constexpr GemmPolicy streaming_policy(int lanes, int columns, int depth, bool split = false) {
  GemmPolicy policy;
  policy.main_loop = MainLoop::gemv;
  policy.block_m = policy.warp_m = policy.thread_m = 4;
  policy.thread_n = columns;
  policy.warp_n = lanes * columns;
  policy.block_n = 2 * policy.warp_n;
  policy.warps_k = 2;
  policy.block_k = 32 / lanes * 2 * depth;
  policy.partition = split ? Partition::split_k : Partition::tiles;
  return policy;
}
constexpr GemmPolicy across = streaming_policy(8, 8, 4), along = streaming_policy(1, 2, 16),
                     both = streaming_policy(4, 4, 4);

template <GemmPolicy policy, class Element, class Sum, Along a, Along b, int width>
void expect_ragged() {
  using Gemm = PlainGemm<policy, Element, Sum, a, b, width>;
  for (Size const& size : ragged) expect_product<Gemm>(size);
  if (width == 1) expect_product<Gemm>({3, 34, 135}, {.misaligned = true});
}

template <GemmPolicy policy, class Element, class Sum, int width>
void expect_layouts() {
  expect_ragged<policy, Element, Sum, Along::mn, Along::mn, width>();
  expect_ragged<policy, Element, Sum, Along::mn, Along::k, width>();
  expect_ragged<policy, Element, Sum, Along::k, Along::mn, width>();
  expect_ragged<policy, Element, Sum, Along::k, Along::k, width>();
}

TEST(EmulatedGemv, EveryLayoutByFour) {
  expect_layouts<across, float, float, 4>();
  expect_layouts<along, float, float, 4>();
  expect_layouts<both, float, float, 4>();
}
TEST(EmulatedGemv, EveryLayoutByOne) {
  expect_layouts<across, float, float, 1>();
  expect_layouts<along, float, float, 1>();
}
TEST(EmulatedGemv, EveryType) {
  expect_layouts<across, double, double, 2>();
  expect_layouts<along, double, double, 2>();
  expect_layouts<across, f16, float, 8>();
  expect_layouts<along, f16, float, 8>();
  expect_layouts<along, bf16, float, 8>();
  expect_layouts<across, s8, s32, 8>();
  expect_layouts<along, s8, s32, 16>();
  expect_layouts<along, s32, s32, 4>();
  expect_layouts<along, e4m3, float, 16>();
  expect_layouts<along, tf32, float, 4>();
}

template <GemmPolicy policy, class Element, class Sum, Along a, Along b>
void expect_unaligned() {
  using A = UnalignedSource<Element, a>;
  using B = UnalignedSource<Element, b>;
  using Gemm = GemmTraits<policy, A, B, Sum, IdentityEpilogue<Sum>, StridedDestination<Sum, 1>>;
  for (int const n : {2, 7, 130, 133}) expect_product<Gemm>({3, n, 259}, {.misaligned = n % 2 == 1});
  for (int const extra : {0, 1, 2, 3, 5, 7})
    expect_product<Gemm>({4, 65 + extra, 256 + extra}, {.batch = 2, .misaligned = extra % 2 == 1});
}
TEST(EmulatedGemv, RunsThatBeginAnywhere) {
  expect_unaligned<along, float, float, Along::k, Along::k>();
  expect_unaligned<along, bf16, float, Along::k, Along::k>();
  expect_unaligned<across, bf16, float, Along::k, Along::mn>();
  expect_unaligned<along, s8, s32, Along::k, Along::k>();
  expect_unaligned<across, double, double, Along::k, Along::mn>();
}

TEST(EmulatedGemv, PartsOfKAddUp) {
  using Along =
      PlainGemm<streaming_policy(1, 2, 4, true), float, float, cosmati::Along::k, cosmati::Along::k, 4>;
  using Across =
      PlainGemm<streaming_policy(8, 8, 4, true), f16, float, cosmati::Along::k, cosmati::Along::mn, 8>;
  for (int splits : {1, 2, 3, 11, 20}) {
    expect_product<Along>({3, 65, 6000}, {.splits = splits});
    expect_product<Across>({4, 140, 1000}, {.batch = 2, .splits = splits});
  }
}

TEST(EmulatedGemv, BatchesByStrideAndByPointers) {
  using Gemm = PlainGemm<both, float, float, Along::k, Along::k, 1>;
  expect_product<Gemm>({3, 35, 111}, {.batch = 4});
  expect_product<Gemm>({3, 35, 111}, {.batch = 4, .pointer_array = true});
}

TEST(EmulatedGemv, WholeTilesNeedNoPredicates) {
  constexpr GemmPolicy whole = [] {
    GemmPolicy p = both;
    p.full_tiles = true;
    return p;
  }();
  expect_product<PlainGemm<whole, float, float, Along::k, Along::mn, 4>>({4, 64, 192});
}

}  // namespace
}  // namespace cosmati::emulated
