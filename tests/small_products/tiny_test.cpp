// Batches of tiny matrices, one per warp: every direction and width, ragged sizes, by single threads and by
// mma.sync.
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

constexpr Size ragged[] = {{1, 1, 1},   {8, 8, 8}, {16, 16, 16}, {13, 7, 19},
                           {16, 3, 40}, {4, 9, 0}, {33, 18, 5}};

constexpr GemmPolicy policy_for(Multiply multiply, int rows, int columns, int depth) {
  GemmPolicy policy;
  policy.main_loop = MainLoop::tiny;
  policy.multiply = multiply;
  policy.block_m = policy.warp_m = rows;
  policy.block_n = policy.warp_n = columns;
  policy.block_k = depth;
  policy.thread_m = rows / 8;
  policy.thread_n = columns / 4;
  policy.stages = 1;
  policy.matrices = 3;
  return policy;
}
constexpr GemmPolicy small = policy_for(Multiply::fma, 8, 8, 8),
                     square = policy_for(Multiply::fma, 16, 16, 16),
                     flat = policy_for(Multiply::fma, 8, 32, 16);

template <GemmPolicy policy, class Element, class Sum, Along a, Along b, int width>
void expect_ragged() {
  using Gemm = PlainGemm<policy, Element, Sum, a, b, width, Sum, width == 1 ? 1 : 2>;
  for (Size const& size : ragged) expect_product<Gemm>(size, {.batch = 4});
  expect_product<Gemm>({7, 8, 9}, {.batch = 5, .pointer_array = true});
  if (width == 1) expect_product<Gemm>({15, 14, 13}, {.batch = 2, .misaligned = true});
}
template <GemmPolicy policy, class Element, class Sum, int width>
void expect_layouts() {
  expect_ragged<policy, Element, Sum, Along::mn, Along::mn, width>();
  expect_ragged<policy, Element, Sum, Along::mn, Along::k, width>();
  expect_ragged<policy, Element, Sum, Along::k, Along::mn, width>();
  expect_ragged<policy, Element, Sum, Along::k, Along::k, width>();
}

TEST(EmulatedTiny, EveryLayout) {
  expect_layouts<small, float, float, 4>();
  expect_layouts<square, float, float, 4>();
  expect_layouts<square, float, float, 1>();
  expect_layouts<flat, float, float, 2>();
}
TEST(EmulatedTiny, EveryType) {
  expect_layouts<square, double, double, 2>();
  expect_layouts<square, f16, float, 8>();
  expect_layouts<small, bf16, float, 8>();
  expect_layouts<square, tf32, float, 4>();
  expect_layouts<square, s32, s32, 4>();
  expect_layouts<policy_for(Multiply::dp4a, 16, 16, 32), s8, s32, 4>();
}
TEST(EmulatedTiny, ByTensorCores) {
  expect_layouts<policy_for(Multiply::mma, 16, 16, 32), f16, float, 8>();
  expect_layouts<policy_for(Multiply::mma, 32, 32, 32), bf16, float, 8>();
  expect_layouts<policy_for(Multiply::mma, 16, 16, 32), bf16, float, 1>();
}

}  // namespace
}  // namespace cosmati::emulated
