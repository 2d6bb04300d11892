// Gradients where dy has few channels, by the kernels for few channels of x, with x and y exchanged.
#include "src/plan/conv/mirrored.h"

#include <gtest/gtest.h>

#include <string>

#include "cosmati/epilogue/parse.h"
#include "tests/plan/convolution_cases.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

constexpr auto forward = ConvolutionDirection::forward, data = ConvolutionDirection::data,
               filter = ConvolutionDirection::filter;

ConvolutionProblem of(ConvolutionDirection direction, Geometry const& g, DataType type = DataType::f16) {
  return problem_of(direction, type, type == DataType::tf32 ? DataType::f32 : type, TensorFormat::nhwc, g);
}

// Images of 128 channels to pictures of 3.
Geometry last_layer() {
  Geometry g;
  g.n = 4, g.c = 128, g.k = 3, g.h = g.w = 512;
  for (int i : {0, 1}) g.pad_begin[i] = g.pad_end[i] = 1;
  return g;
}

TEST(Mirrored, GradientsOfALastLayerUseKernelsForFewChannels) {
  EXPECT_EQ(make_plan(of(data, last_layer()), described_h200()).kernel, "fprop_small_c");
  EXPECT_EQ(make_plan(of(filter, last_layer()), described_h200()).kernel, "wgrad_small_c");
}

TEST(Mirrored, ExchangedTwiceIsTheProblem) {
  Geometry g = last_layer();
  g.r = 5, g.pad_begin[0] = 3, g.pad_end[1] = 0;
  ConvolutionProblem const problem = of(filter, g), view = plan::mirrored(problem),
                           again = plan::mirrored(view);
  EXPECT_EQ(view.pad_begin[0], 1);
  EXPECT_EQ(view.pad_end[1], 2);
  EXPECT_EQ(view.w.layout.stride[2], -problem.w.layout.stride[2]);
  EXPECT_EQ(again.x.layout, problem.x.layout);
  EXPECT_EQ(again.w.layout, problem.w.layout);
  EXPECT_EQ(again.pad_end[1], problem.pad_end[1]);
}

// Uneven filters and padding, up to that of a full convolution, and single taps.
std::vector<Geometry> few_filters() {
  Geometry even, uneven, full, one_tap, wide;
  even.n = 2, even.c = 16, even.k = 3, even.h = 13, even.w = 11;
  uneven = even, uneven.r = 2, uneven.s = 5, uneven.k = 8, uneven.pad_begin[1] = 3, uneven.pad_end[0] = 1;
  full = even, full.k = 1, full.pad_begin[0] = full.pad_end[0] = full.pad_begin[1] = full.pad_end[1] = 2;
  one_tap = even, one_tap.r = one_tap.s = 1;
  wide = even, wide.c = 40, wide.s = 7, wide.pad_begin[1] = 2;
  return {even, uneven, full, one_tap, wide};
}

TEST(Mirrored, GradientsAreTheReferences) {
  for (Geometry const& g : few_filters())
    for (DataType const type : {DataType::f16, DataType::tf32}) {
      if (g.k * size_of(type) > 16) continue;
      SCOPED_TRACE(std::string(name_of(type)) + ", " + std::to_string(g.k) + " filters of " +
                   std::to_string(g.r) + 'x' + std::to_string(g.s));
      ConvolutionProblem dw = of(filter, g, type);
      ConvolutionProblem dx = of(data, g, type);
      if (g.k <= 4) {
        expect_right(dx, "fprop_small_c");
        dx.epilogue.expression =
            epilogue::parse("acc + bias[k] - rest[n, k, p, q]", epilogue::convolution_indices);
        dx.epilogue.operands = {describe(DataType::f32, {g.c}), dx.x};
        expect_right(dx, "fprop_small_c");
      }
      expect_right(dw, "wgrad_small_c");
      dw.w.layout.stride[0] += 5;
      expect_right(dw, "wgrad_small_c");
    }
}

// Channels of dy that are copied 16 bytes at a time.
TEST(Mirrored, DataGradientsOf16Filters) {
  Geometry g = few_filters().front();
  g.k = 16;
  for (int i : {0, 1}) g.pad_begin[i] = g.pad_end[i] = 1;
  expect_right(of(data, g), "fprop_small_c");
}

// Filters of one tap: dy of whole units of 16 bytes, and not; results that are collected, and not.
TEST(Mirrored, DataGradientsOfOneTap) {
  for (Index const k : {16, 24, 17})
    for (Index const c : {6, 8, 17, 40}) {
      Geometry g = few_filters().front();
      g.r = g.s = 1, g.c = c, g.k = k;
      SCOPED_TRACE(std::to_string(k) + " filters, " + std::to_string(c) + " channels");
      expect_right(of(data, g), "fprop_small_c");
    }
}

// The bias gradient is a sum over dy, which the kernel then reads in windows.
TEST(Mirrored, TheBiasGradientIsApart) {
  ConvolutionProblem problem = of(filter, few_filters().front());
  problem.db = describe(DataType::f32, Shape(problem.y.extent(1)));
  test::Trial trial(problem, 5, test::Values::small_integers);
  EXPECT_EQ(trial.expect_close(emulated_device(), {.terms = 300}, "wgrad_small_c"), "wgrad_small_c");
}

TEST(Mirrored, NotWithStridesOrMorePaddingThanTheFilterReaches) {
  Geometry g = few_filters().front();
  g.stride[0] = 2;
  EXPECT_NE(refusal_of(of(data, g), "fprop_small_c").find("stride 2x1; expected 1x1"), std::string::npos);
  EXPECT_NE(refusal_of(of(filter, g), "wgrad_small_c").find("dy: the channels of f16"), std::string::npos);
  g.stride[0] = 1, g.pad_begin[0] = 3;
  EXPECT_NE(refusal_of(of(data, g), "fprop_small_c").find("padding of 3; at most 2"), std::string::npos);
  g = few_filters().front();
  g.c = 11;
  EXPECT_NE(refusal_of(of(filter, g), "wgrad_small_c").find("x: the channels of f16 (2, 11, 13, 11)"),
            std::string::npos);
  EXPECT_EQ(refusal_of(of(filter, few_filters().front()), "fprop_small_c"),
            "computes forward convolutions, and data gradients with stride 1");
  EXPECT_EQ(refusal_of(of(forward, few_filters().front()), "wgrad_small_c"),
            "computes filter gradients only");
}

}  // namespace
}  // namespace cosmati
