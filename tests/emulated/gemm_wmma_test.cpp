// Matrix products by WMMA: every type, layout and main loop, partial and full tiles, split-K, batches.
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

constexpr MainLoop buffered = MainLoop::double_buffered, multistage = MainLoop::multistage;

constexpr GemmPolicy wmma_policy(MainLoop main_loop, int element_bytes, bool whole = false) {
  GemmPolicy policy = small_policy(main_loop, Multiply::wmma, true);
  policy.block_k = 64 / element_bytes;
  policy.warp_m = 32, policy.warp_n = 16;
  policy.thread_m = 4, policy.thread_n = 4;
  policy.epilogue = EpilogueSchedule::staged;
  policy.full_tiles = whole;
  return policy;
}

template <MainLoop main_loop, class Element, class Sum, Along a, Along b, int width, class Result = Sum>
void expect_products() {
  using Gemm =
      PlainGemm<wmma_policy(main_loop, static_cast<int>(sizeof(Element))), Element, Sum, a, b, width, Result>;
  expect_product<Gemm>({1, 1, 1});
  expect_product<Gemm>({33, 35, 0});
  expect_product<Gemm>({37, 41, 43}, {.batch = 2});
  expect_product<Gemm>({65, 31, 130}, {.splits = 3});
}

TEST(EmulatedGemmWmma, F16InEveryLayout) {
  constexpr Along outer = Along::mn, depth = Along::k;
  expect_products<multistage, f16, float, outer, outer, 8, f16>();
  expect_products<multistage, f16, float, outer, depth, 8>();
  expect_products<multistage, f16, float, depth, outer, 2>();
  expect_products<multistage, f16, float, depth, depth, 8>();
  expect_products<buffered, f16, float, outer, outer, 8>();
  expect_products<buffered, f16, float, outer, depth, 1>();
  expect_products<buffered, f16, float, depth, outer, 8>();
  expect_products<buffered, f16, float, depth, depth, 4, f16>();
}
TEST(EmulatedGemmWmma, F16WithSumsInF16) {
  expect_products<multistage, f16, f16, Along::k, Along::mn, 8>();
  expect_products<buffered, f16, f16, Along::mn, Along::k, 1, float>();
}
TEST(EmulatedGemmWmma, Bf16AndTf32) {
  expect_products<multistage, bf16, float, Along::k, Along::mn, 8, bf16>();
  expect_products<multistage, tf32, float, Along::mn, Along::k, 4>();
  expect_products<buffered, tf32, float, Along::k, Along::mn, 1>();
}
TEST(EmulatedGemmWmma, F64) {
  expect_products<multistage, f64, f64, Along::mn, Along::k, 1>();
  expect_products<buffered, f64, f64, Along::k, Along::mn, 2>();
}
TEST(EmulatedGemmWmma, Bytes) {
  expect_products<multistage, s8, s32, Along::mn, Along::k, 16>();
  expect_products<multistage, u8, s32, Along::k, Along::mn, 1>();
  expect_products<buffered, s8, s32, Along::k, Along::mn, 4>();
}

TEST(EmulatedGemmWmma, WholeTiles) {
  expect_product<PlainGemm<wmma_policy(multistage, 2, true), f16, float, Along::k, Along::mn, 8>>(
      {64, 32, 128});
  expect_product<PlainGemm<wmma_policy(buffered, 2, true), f16, float, Along::mn, Along::k, 8>>({32, 64, 96});
}

TEST(EmulatedGemmWmma, NamedTiles) {
  constexpr GemmPolicy huge{.block_m = 128,  // three warps of 48 columns in two rows
                            .block_n = 144,
                            .block_k = 32,
                            .warp_m = 64,
                            .warp_n = 48,
                            .thread_m = 8,
                            .thread_n = 12,
                            .multiply = Multiply::wmma,
                            .epilogue = EpilogueSchedule::staged};
  expect_product<PlainGemm<huge, f16, float, Along::k, Along::mn, 8>>({140, 130, 72});
}

}  // namespace
}  // namespace cosmati::emulated
