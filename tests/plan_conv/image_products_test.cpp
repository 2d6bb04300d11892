// Filter gradients of 1x1 convolutions in NCHW by one product per image: when this is planned, and results.
#include "src/plan/conv/nested/image_products.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/plan/convolution_cases.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "image_products";

ConvolutionProblem gradient(DataType type, Geometry g, TensorFormat format = TensorFormat::nchw) {
  g.r = g.s = 1;
  return problem_of(ConvolutionDirection::filter, type, type, format, g);
}

TEST(ImageProducts, AreChosenForLayersOfResnet) {
  for (DataType const type : {DataType::f16, DataType::bf16, DataType::f32})
    for (auto const& [c, size, k] : {std::array{64, 56, 256}, {256, 56, 64}, {512, 28, 128}}) {
      Geometry g;
      g.n = 64, g.c = c, g.k = k, g.h = g.w = size;
      auto const plan = make_plan(gradient(type, g), described_h200());
      EXPECT_EQ(plan.kernel, kernel) << name_of(type) << ' ' << c;
      GemmProblem const products = plan::plan_of_products(plan).problem;
      EXPECT_EQ(products.d.type, DataType::f32);
      EXPECT_EQ(products.d.extent(0), 64);
      EXPECT_EQ(products.a.extent(2), Index{size} * size);
    }
}

TEST(ImageProducts, AreTheReferences) {
  for (DataType const type : {DataType::f64, DataType::f32, DataType::f16})
    for (Index const images : {2, 5})
      for (Index const channels : {1, 7, 32}) {
        Geometry g;
        g.n = images, g.c = channels, g.k = 16, g.h = 5, g.w = 8;
        ConvolutionProblem problem = gradient(type, g);
        SCOPED_TRACE(std::string(name_of(type)) + ' ' + std::to_string(images) + " images of " +
                     std::to_string(channels) + " channels");
        expect_right(problem, kernel);
        // As when a channel of a larger tensor is left out.
        problem.x.layout.stride[0] += 5 * 8;
        expect_right(problem, kernel);
        problem.w.layout.stride[0] += 3;
        expect_right(problem, kernel);
      }
}

TEST(ImageProducts, WithTheBiasGradientInEveryType) {
  for (DataType const type :
       {DataType::f64, DataType::f32, DataType::tf32, DataType::f16, DataType::bf16, DataType::s8}) {
    DataType const result = type == DataType::tf32 ? DataType::f32
                            : type == DataType::s8 ? DataType::s32
                                                   : type;
    Geometry g;
    g.n = 3, g.c = 8, g.k = 16, g.h = 4, g.w = 8, g.r = g.s = 1;
    ConvolutionProblem problem =
        problem_of(ConvolutionDirection::filter, type, result, TensorFormat::nchw, g);
    problem.db = describe(result, Shape(g.k));
    test::Trial trial(problem, 5, test::Values::small_integers);
    EXPECT_EQ(trial.expect_close(emulated_device(), {.terms = 300}, kernel), kernel) << name_of(type);
  }
}

// With many images of few pixels, the stated error includes that of the sum over the images.
TEST(ImageProducts, StateTheErrorOfTheSum) {
  Geometry g;
  g.n = 1024, g.c = 8, g.k = 8, g.h = g.w = 2;
  ConvolutionProblem const problem = gradient(DataType::f32, g);
  auto const error_of = [&](std::string const& name) {
    PlanOptions options;
    options.kernel = name;
    return make_plan(problem, described_h200(), options).chosen().expected_error;
  };
  EXPECT_GT(error_of(kernel), 0.4 * error_of("direct"));
  PlanOptions options;
  options.max_error = 1e-12;
  try {
    (void)make_plan(problem, described_h200(), options);
    FAIL();
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("direct_tiled"), std::string::npos) << error.what();
  }
}

// The sums of 4096 images, 2048x2048 each, would take 69 of 141 GB.
TEST(ImageProducts, KeepToAQuarterOfTheMemory) {
  Geometry g;
  g.n = 4096, g.c = g.k = 2048, g.h = g.w = 14;
  EXPECT_NE(refusal_of(gradient(DataType::f32, g), kernel).find("needs 68719476736 bytes of workspace"),
            std::string::npos);
}

TEST(ImageProducts, RefuseWhatIsAnotherProduct) {
  Geometry g;
  EXPECT_EQ(refusal_of(gradient(DataType::f32, g, TensorFormat::nhwc), kernel),
            "a single stride covers the pixels of all images, so that one product sums over them");
  ConvolutionProblem problem = gradient(DataType::f32, g);
  problem.x.layout.stride[2] += 1;
  EXPECT_EQ(refusal_of(problem, kernel), "no single stride covers all pixels of an image");
  problem = gradient(DataType::f32, g);
  problem.direction = ConvolutionDirection::data;
  EXPECT_EQ(refusal_of(problem, kernel), "computes only filter gradients, which are sums over the images");
  g.groups = 2;
  EXPECT_EQ(refusal_of(gradient(DataType::f32, g), kernel), "2 groups leave no batch for the images");
  g.groups = 1;
  g.stride[0] = 2;
  EXPECT_EQ(refusal_of(gradient(DataType::f32, g), kernel),
            "stride 2, padding 0 and 0; a matrix product needs stride 1 and no padding");
}

// The sums of two images of 6x4 channels, in units of 256 bytes, and the memory of their kernels.
TEST(ImageProducts, KeepTheLimitOfWorkspace) {
  Geometry g;
  ConvolutionProblem const problem = gradient(DataType::f32, g);
  PlanOptions options;
  options.kernel = kernel;
  std::size_t const whole = make_plan(problem, emulated_device(), options).workspace_bytes;
  EXPECT_GE(whole, 256U);
  expect_right(problem, kernel, "", whole);
  options.max_workspace = 255;
  EXPECT_THROW((void)make_plan(problem, emulated_device(), options), Error);
}

}  // namespace
}  // namespace cosmati
