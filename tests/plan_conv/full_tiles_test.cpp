// Convolutions whose tiles need no predicates: the planner says so only if every element of a tile exists.
#include <gtest/gtest.h>

#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

Plan<ConvolutionProblem> plan_of(Index channels, Index taps, Index stride, Index pad, TensorFormat format,
                                 char const* kernel) {
  Geometry g;
  g.n = 64, g.c = channels, g.k = 64, g.h = g.w = 16, g.r = g.s = taps;
  for (int i : {0, 1}) g.stride[i] = stride, g.pad_begin[i] = g.pad_end[i] = pad;
  PlanOptions options;
  options.kernel = kernel;
  options.policy = "main_loop=double_buffered,block_m=64,block_n=64";
  return make_plan(problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, format, g),
                   described_h200(), options);
}

TEST(FullTiles, OfConvolutionsWithoutWindows) {
  auto const unrolled = plan_of(64, 1, 2, 0, TensorFormat::nchw, "unroll_gemm");
  EXPECT_TRUE(unrolled.recipe.product.policy.full_tiles);
  auto const by_taps = plan_of(32, 2, 2, 0, TensorFormat::nhwc, "implicit_gemm");
  EXPECT_TRUE(by_taps.recipe.stepwise);
  EXPECT_TRUE(by_taps.recipe.product.policy.full_tiles);
}

// 28 channels are padded to 32 in each of four taps, although all 112 values of depth are a multiple of a
// step.
TEST(FullTiles, NotIfStepsOfTapsArePadded) {
  auto const padded = plan_of(28, 2, 2, 0, TensorFormat::nhwc, "implicit_gemm");
  EXPECT_TRUE(padded.recipe.stepwise);
  EXPECT_FALSE(padded.recipe.product.policy.full_tiles);
}

TEST(FullTiles, NotIfWindowsReachBeyondTheImage) {
  EXPECT_FALSE(plan_of(32, 3, 1, 1, TensorFormat::nhwc, "implicit_gemm").recipe.product.policy.full_tiles);
}

}  // namespace
}  // namespace cosmati
