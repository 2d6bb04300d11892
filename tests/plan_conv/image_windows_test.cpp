// Convolutions by wgmma from images in shared memory: in the emulator, against the reference; rejections, the
// choice for a GPU, and composed kernels.
#include "src/plan/conv/windows/image_windows.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/form.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr auto forward = ConvolutionDirection::forward, data = ConvolutionDirection::data;
constexpr char const* kernel = "image_windows";

ConvolutionProblem problem(ConvolutionDirection direction, Index n, Index c, Index k, Index h, Index w,
                           Index rows = 3, Index columns = 3, Index pad = 1, DataType type = DataType::f16) {
  Geometry g;
  g.n = n, g.c = c, g.k = k, g.h = h, g.w = w, g.r = rows, g.s = columns;
  for (int i : {0, 1}) g.pad_begin[i] = g.pad_end[i] = pad;
  return problem_of(direction, type, type, TensorFormat::nhwc, g);
}

// Several tiles and chunks of channels, parts of both, and images smaller than a patch.
std::vector<ConvolutionProblem> problems() {
  return {problem(forward, 2, 64, 64, 9, 21), problem(forward, 1, 72, 80, 12, 17),
          problem(forward, 3, 8, 8, 3, 5),    problem(data, 2, 64, 64, 9, 21),
          problem(data, 1, 72, 136, 13, 8),   problem(forward, 1, 136, 24, 6, 40, 3, 3, 0)};
}

TEST(ImageWindows, EveryShapeMatchesTheReference) {
  for (ConvolutionProblem const& p : problems()) expect_right(p, kernel);
  ConvolutionProblem dilated = problem(forward, 2, 64, 64, 11, 9, 2, 3, 1);
  dilated.dilation[0] = 2;
  dilated.y.layout = image_layout(TensorFormat::nhwc, 2, 64, 11, 9);
  expect_right(dilated, kernel);
}

TEST(ImageWindows, Epilogues) {
  for (ConvolutionProblem p : {problems()[0], problems()[1]}) {
    p.epilogue.expression =
        epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
    p.epilogue.operands = {describe(DataType::f32, {p.y.extent(1)}), p.y};
    expect_right(p, kernel);
  }
}

TEST(ImageWindows, PixelsAreOneDigitIfTheirDistanceIsConstant) {
  auto const is_merged = [](ConvolutionProblem const& p) {
    return plan::has_one_digit(plan::with_merged_rows(plan::all_channels_form(p)).m);
  };
  ConvolutionProblem dense = problem(forward, 2, 64, 64, 9, 21), gap = dense;
  EXPECT_TRUE(is_merged(dense));
  gap.y.layout.stride[2] += 64, gap.y.layout.stride[0] = 9 * gap.y.layout.stride[2];
  EXPECT_FALSE(is_merged(gap));
  dense.epilogue.expression = epilogue::parse("acc + rest[n, k, p, q]", epilogue::convolution_indices);
  dense.epilogue.operands = {dense.y};
  EXPECT_TRUE(is_merged(dense));
  dense.epilogue.operands = {gap.y};
  EXPECT_FALSE(is_merged(dense));
}

TEST(ImageWindows, RefusalsHoldTheNumbers) {
  auto const expect = [](ConvolutionProblem const& p, char const* part) {
    std::string const sentence = plan::image_windows(p, emulated_device(), {}).refusal;
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  expect(problem(forward, 1, 64, 12, 8, 8), "12 channels of the result; supported: multiples of 8");
  expect(problem(forward, 1, 12, 64, 8, 8), "x: a stride of 12 elements of f16");
  expect(problem(forward, 1, 64, 64, 8, 8, 1, 1, 0), "the filter has one tap");
  expect(problem(forward, 1, 64, 64, 8, 8, 3, 3, 1, DataType::f32), "not f32 and f32");
  auto p = problem(forward, 1, 64, 64, 9, 9);
  p.stride[0] = 2;
  p.y = describe(DataType::f16, image_layout(TensorFormat::nhwc, 1, 64, 5, 9));
  expect(p, "a stride of 2; supported: 1");
  p = problem(forward, 1, 64, 64, 8, 8);
  p.w = describe(DataType::f16, image_layout(TensorFormat::nchw, 64, 64, 3, 3));
  expect(p, "w: its channels are 9 elements apart");
  p = problem(forward, 1, 64, 64, 8, 8);
  p.direction = ConvolutionDirection::filter;
  expect(p, "computes forward convolutions and data gradients");
}

// A stage of the image is released only when the products of the next one have begun.
TEST(ImageWindows, SeveralChunksHaveSeveralStagesOfTheImage) {
  Device h200 = emulated_device();
  h200.backend = Backend::cuda;
  PlanOptions options;
  options.kernel = kernel;
  for (auto const& p :
       {problem(forward, 64, 128, 64, 56, 56, 13, 13, 6), problem(data, 8, 64, 512, 32, 32, 11, 11, 5)})
    EXPECT_GT(std::get<ImageWindowsRecipe>(make_plan(p, h200, options).recipe.own).shape.image_stages, 1);
}

TEST(ImageWindows, ABlockOfOneTileWaitsForItsCompleteFilter) {
  Device h200 = emulated_device();
  h200.backend = Backend::cuda;
  EXPECT_EQ(make_plan(problem(forward, 64, 16, 120, 5, 5, 5, 5, 0), h200).kernel, "warp_specialized");
}

TEST(ImageWindows, ThePlannerTakesItForLayersOf64FiltersAndItCompilesWithoutSpills) {
  Device h200 = emulated_device();
  h200.backend = Backend::cuda;
  for (auto const& p : {problem(forward, 64, 64, 64, 56, 56), problem(data, 64, 64, 64, 224, 224),
                        problem(forward, 64, 64, 64, 56, 56, 13, 13, 6)}) {
    auto const plan = make_plan(p, h200);
    EXPECT_EQ(plan.kernel, kernel);
    if (jit::nvrtc_available()) {
      EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
    }
  }
}

}  // namespace
}  // namespace cosmati
