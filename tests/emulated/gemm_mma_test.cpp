// Matrix products by tensor cores (mma.sync): every type, layout and width of runs, partial and full tiles,
// both epilogues.
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

constexpr Size sizes[] = {{1, 1, 1}, {33, 35, 0}, {37, 41, 43}, {32, 64, 64}, {65, 31, 130}};

constexpr GemmPolicy mma_policy(int element_bytes, EpilogueSchedule epilogue = EpilogueSchedule::direct,
                                bool whole = false) {
  GemmPolicy policy = small_policy(MainLoop::multistage, Multiply::mma, true);
  policy.block_k = 64 / element_bytes;
  policy.warp_m = 32, policy.warp_n = 16;
  policy.thread_m = 4, policy.thread_n = 4;
  policy.epilogue = epilogue;
  policy.full_tiles = whole;
  return policy;
}

template <class Element, class Sum, Along a, Along b, int width, class Result = Sum>
void expect_products() {
  constexpr int bytes = static_cast<int>(sizeof(Element));
  for (Size const& size : sizes) {
    expect_product<PlainGemm<mma_policy(bytes), Element, Sum, a, b, width, Result, 2>>(size);
    expect_product<PlainGemm<mma_policy(bytes, EpilogueSchedule::staged), Element, Sum, a, b, width, Result>>(
        size, {.splits = 2});
  }
  expect_product<
      PlainGemm<mma_policy(bytes, EpilogueSchedule::direct, true), Element, Sum, a, b, width, Result, 2>>(
      {64, 32, 128});
}

template <class Element, int width, class Sum = float, class Narrow = f16>
void expect_layouts() {
  constexpr Along outer = Along::mn, depth = Along::k;
  expect_products<Element, Sum, outer, outer, width>();
  expect_products<Element, Sum, outer, depth, width>();
  expect_products<Element, Sum, depth, outer, width, Narrow>();
  expect_products<Element, Sum, depth, depth, width>();
}

TEST(EmulatedGemmMma, F16) {
  expect_layouts<f16, 8>();
  expect_layouts<f16, 2>();
  expect_layouts<f16, 1>();
}
TEST(EmulatedGemmMma, F16WithSumsInF16) {
  expect_products<f16, f16, Along::k, Along::mn, 8>();
  expect_products<f16, f16, Along::mn, Along::k, 1, float>();
}
TEST(EmulatedGemmMma, Bf16) { expect_layouts<bf16, 8>(); }
TEST(EmulatedGemmMma, Tf32) {
  expect_layouts<tf32, 4>();
  expect_layouts<tf32, 1>();
}
TEST(EmulatedGemmMma, F64) {
  expect_layouts<f64, 2, f64, float>();
  expect_layouts<f64, 1, f64, double>();
}
TEST(EmulatedGemmMma, Bytes) {
  expect_products<s8, s32, Along::k, Along::k, 16>();
  expect_products<u8, s32, Along::k, Along::k, 4>();
  expect_products<s8, s32, Along::k, Along::k, 1>();
}
TEST(EmulatedGemmMma, Fp8) {
  expect_products<e4m3, float, Along::k, Along::k, 16>();
  expect_products<e5m2, float, Along::k, Along::k, 8>();
}

TEST(EmulatedGemmMma, NamedTiles) {
  constexpr GemmPolicy large{.block_m = 128,
                             .block_n = 128,
                             .block_k = 32,
                             .warp_m = 64,
                             .warp_n = 64,
                             .thread_m = 8,
                             .thread_n = 16,
                             .stages = 4,
                             .main_loop = MainLoop::multistage,
                             .multiply = Multiply::mma};
  expect_product<PlainGemm<large, f16, float, Along::k, Along::mn, 8>>({140, 130, 72});
}

}  // namespace
}  // namespace cosmati::emulated
