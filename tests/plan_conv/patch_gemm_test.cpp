// Gradients of convolutions with patches that do not overlap, or of single pixels with a stride, by one
// product and a copy: when this is planned, and results.
#include "src/plan/conv/nested/patch_gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/plan/convolution_cases.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "patch_gemm";

// `down` by `across` patches of `taps` by `taps` pixels.
ConvolutionProblem patches(DataType type, Index images, Index channels, Index filters, Index taps, Index down,
                           Index across, ConvolutionDirection direction = ConvolutionDirection::data) {
  Geometry g;
  g.n = images, g.c = channels, g.k = filters, g.r = g.s = taps;
  g.h = down * taps, g.w = across * taps;
  g.stride[0] = g.stride[1] = taps;
  return problem_of(direction, type, type, TensorFormat::nhwc, g);
}

TEST(PatchGemm, IsChosenForVisionTransformers) {
  for (auto const& [filters, taps] : {std::array{768, 16}, {1024, 14}, {1280, 14}, {768, 32}}) {
    auto const plan = make_plan(patches(DataType::f16, 32, 3, filters, taps, 14, 14), described_h200());
    EXPECT_EQ(plan.kernel, kernel) << filters << ' ' << taps;
    EXPECT_LT(plan.chosen().predicted_seconds, 100e-6) << filters << ' ' << taps;
    GemmProblem const product = plan::plan_of_patches(plan).problem;
    EXPECT_EQ(product.m(), 32 * 14 * 14);
    EXPECT_EQ(product.n(), 3 * taps * taps);
    EXPECT_EQ(product.k(), filters);
  }
  // The four phases of a small filter share a tile, and their results are written once.
  EXPECT_NE(make_plan(patches(DataType::f16, 8, 64, 128, 2, 64, 64), described_h200()).kernel, kernel);
}

TEST(PatchGemm, AreTheReferences) {
  for (DataType const type : {DataType::f64, DataType::f32, DataType::tf32, DataType::f16})
    for (Index const channels : {1, 3, 8})
      for (Index const taps : {2, 3}) {
        for (auto const direction : {ConvolutionDirection::data, ConvolutionDirection::filter}) {
          ConvolutionProblem problem = patches(type, 2, channels, 5, taps, 3, 4, direction);
          SCOPED_TRACE(std::string(name_of(type)) + ' ' + std::to_string(channels) + " channels, " +
                       std::to_string(taps) + " taps, " + std::to_string(static_cast<int>(direction)));
          expect_right(problem, kernel);
          problem.w.layout.stride[0] += 3;
          expect_right(problem, kernel);
          // As when the last columns of a larger image are left out.
          problem.x.layout.stride[2] += 4 * channels;
          problem.x.layout.stride[0] = problem.x.layout.stride[2] * problem.x.extent(2);
          expect_right(problem, kernel);
        }
      }
}

// A filter of one tap, whose windows are every second or third pixel of any tensor.
TEST(PatchGemm, CopiesPixelsWithAStride) {
  for (DataType const type : {DataType::f64, DataType::f32, DataType::tf32, DataType::f16})
    for (auto const& [down, across, height, width] :
         {std::array{2, 2, 8, 8}, {2, 2, 7, 9}, {3, 2, 9, 8}, {1, 3, 4, 7}, {2, 2, 1, 5}}) {
      Geometry g;
      g.n = 3, g.c = 6, g.k = 5, g.r = g.s = 1, g.h = height, g.w = width;
      g.stride[0] = down, g.stride[1] = across;
      for (TensorFormat const format : {TensorFormat::nhwc, TensorFormat::nchw}) {
        SCOPED_TRACE(std::string(name_of(type)) + ' ' + std::to_string(height) + ' ' + std::to_string(down));
        ConvolutionProblem problem = problem_of(ConvolutionDirection::filter, type, type, format, g);
        if (format == TensorFormat::nchw)  // the pixels of all images of dy need one stride
          problem.y.layout = image_layout(TensorFormat::nhwc, 3, 5, problem.y.extent(2), problem.y.extent(3));
        expect_right(problem, kernel);
      }
    }
}

TEST(PatchGemm, IsChosenForTheFilterGradientsOfShortcutsInTf32) {
  Geometry g;
  g.n = 64, g.c = 512, g.k = 1024, g.r = g.s = 1, g.h = g.w = 28;
  g.stride[0] = g.stride[1] = 2;
  ConvolutionProblem problem =
      problem_of(ConvolutionDirection::filter, DataType::tf32, DataType::tf32, TensorFormat::nhwc, g);
  problem.w.type = DataType::f32;
  auto const plan = make_plan(problem, described_h200());
  EXPECT_EQ(plan.kernel, kernel);
  GemmProblem const product = plan::plan_of_patches(plan).problem;
  EXPECT_EQ(product.m(), 1024);
  EXPECT_EQ(product.n(), 512);
  EXPECT_EQ(product.k(), 64 * 14 * 14);
  EXPECT_EQ(product.b.layout.stride[1], 1) << "contiguous along k, as wgmma takes tf32";
  problem.x.type = problem.y.type = problem.w.type = DataType::f16;
  PlanOptions options;
  options.kernel = kernel;
  auto const of_f16 = make_plan(problem, described_h200(), options);
  EXPECT_EQ(plan::plan_of_patches(of_f16).problem.b.layout.stride[2], 1);
}

// Single rows, columns and patches, whose strides have no meaning.
TEST(PatchGemm, OfOneRowColumnOrImage) {
  for (auto const& [images, down, across] :
       {std::array{1, 1, 1}, {3, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 4, 1}}) {
    SCOPED_TRACE(std::to_string(images) + ' ' + std::to_string(down) + ' ' + std::to_string(across));
    expect_right(patches(DataType::f32, images, 3, 4, 2, down, across), kernel);
  }
  Geometry g;
  g.n = 2, g.c = 3, g.k = 4, g.r = 1, g.s = 3, g.h = 5, g.w = 9;
  g.stride[0] = 1, g.stride[1] = 3;
  expect_right(problem_of(ConvolutionDirection::data, DataType::f32, DataType::f32, TensorFormat::nhwc, g),
               kernel);
}

// Views of larger tensors: rows of one patch with gaps between images, and single channels of several.
TEST(PatchGemm, OfViews) {
  Geometry g;
  g.n = 2, g.c = 3, g.k = 4, g.r = 1, g.s = 2, g.h = 1, g.w = 8;
  g.stride[0] = 1, g.stride[1] = 2;
  ConvolutionProblem row =
      problem_of(ConvolutionDirection::data, DataType::f32, DataType::f32, TensorFormat::nhwc, g);
  row.x.layout.stride[0] = row.x.layout.stride[2] = 30;
  expect_right(row, kernel);
  row.x.layout.stride[2] = 24;
  expect_right(row, kernel);
  ConvolutionProblem one = patches(DataType::f32, 2, 1, 5, 2, 3, 4);
  for (TensorDescription* tensor : {&one.x, &one.w})
    for (int d = 0; d < 4; ++d) tensor->layout.stride[d] *= 5;
  expect_right(one, kernel);
  // With one channel, NCHW is the same memory.
  one = patches(DataType::f32, 2, 1, 5, 2, 3, 4);
  one.x.layout = image_layout(TensorFormat::nchw, 2, 1, 6, 8);
  one.w.layout = image_layout(TensorFormat::nchw, 5, 1, 2, 2);
  expect_right(one, kernel);
}

TEST(PatchGemm, AppliesAnEpilogueOfScalars) {
  ConvolutionProblem problem = patches(DataType::f32, 2, 3, 5, 2, 3, 4);
  problem.epilogue.expression = epilogue::parse("relu(0.5*acc)", epilogue::convolution_indices);
  expect_right(problem, kernel);
}

TEST(PatchGemm, RefusesOtherWindows) {
  auto const refusal = [](auto const& change) {
    ConvolutionProblem problem = patches(DataType::f32, 2, 3, 5, 2, 3, 4);
    change(problem);
    return refusal_of(problem, kernel);
  };
  using P = ConvolutionProblem;
  EXPECT_EQ(refusal([](P& p) {
              p.x.layout.stride[3] += 1, p.x.layout.stride[2] += p.x.extent(3);
              p.x.layout.stride[0] = p.x.layout.stride[2] * p.x.extent(2);
            }),
            "dx: no single stride covers the channels of adjacent pixels (channels last)");
  EXPECT_EQ(refusal([](P& p) { p.y.layout.stride[2] += 5, p.y.layout.stride[0] += 15; }),
            "dy: no single stride covers the pixels of all images");
  EXPECT_EQ(refusal([](P& p) { p.x.layout.stride[0] += 1; }),
            "dx: no single stride covers the rows of all images");
  EXPECT_EQ(refusal([](P& p) { p.w.layout.stride[2] += 3, p.w.layout.stride[0] += 6; }),
            "w: no single stride covers all taps and channels (channels last)");
  Geometry g;
  g.n = 2, g.c = 3, g.k = 5, g.r = g.s = 2, g.h = 7, g.w = 8;
  g.stride[0] = g.stride[1] = 2;
  auto const refusal_in = [&](ConvolutionDirection direction) {
    return refusal_of(problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nhwc, g), kernel);
  };
  EXPECT_EQ(refusal_in(ConvolutionDirection::data),
            "3 windows of 2 taps with padding 0 for 7 rows; patches must cover dx without padding");
  g.h = 8, g.stride[1] = 1;
  EXPECT_EQ(refusal_in(ConvolutionDirection::data),
            "stride 1 and dilation 1; patches of 2 taps that cover dx need 2 and 1");
  EXPECT_EQ(refusal_in(ConvolutionDirection::filter),
            "stride 1 and dilation 1; patches of 2 taps that cover x need 2 and 1");
  EXPECT_EQ(refusal_in(ConvolutionDirection::forward), "computes only gradients of data and filters");
  g.r = g.s = 1, g.stride[1] = 2, g.pad_begin[0] = 1;
  EXPECT_EQ(refusal_in(ConvolutionDirection::filter),
            "windows lie in the padding of rows; each must be a pixel of x");
  EXPECT_EQ(refusal_in(ConvolutionDirection::data), "the filter has 1x1 taps, whose patches are pixels");
  g.pad_begin[0] = 0, g.pad_end[1] = 1, g.w = 8;
  EXPECT_EQ(refusal_in(ConvolutionDirection::filter),
            "windows lie in the padding of columns; each must be a pixel of x");
  g.pad_end[1] = 0, g.stride[0] = g.stride[1] = 1;
  EXPECT_EQ(refusal_in(ConvolutionDirection::filter), "stride 1; the pixels of a 1x1 filter need no copy");
}

// The patches in units of 256 bytes, and the memory of the product and the copy.
TEST(PatchGemm, KeepsTheLimitOfWorkspace) {
  for (auto const direction : {ConvolutionDirection::data, ConvolutionDirection::filter}) {
    ConvolutionProblem const problem = patches(DataType::f32, 2, 3, 5, 2, 3, 4, direction);
    PlanOptions options;
    options.kernel = kernel;
    std::size_t const whole = make_plan(problem, emulated_device(), options).workspace_bytes;
    EXPECT_GE(whole, 24U * 12 * 4);
    expect_right(problem, kernel, "", whole);
    options.max_workspace = 255;
    EXPECT_THROW((void)make_plan(problem, emulated_device(), options), Error);
  }
}

}  // namespace
}  // namespace cosmati
