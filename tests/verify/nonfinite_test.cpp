// Zero scalars times NaN, and moments of infinities, by every kernel of every backend that needs no GPU
// (docs/nonfinite.md). tests/cli/check_nonfinite.py compares convolutions and products with numpy.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cosmati/epilogue/cuda_text.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer.h"
#include "reference/padding.h"

namespace cosmati {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
float const nan = std::numeric_limits<float>::quiet_NaN();

template <class Problem>
void run_plan(Problem const& problem, Backend backend, std::string const& kernel,
              typename Problem::Arguments const& arguments) {
  PlanOptions options;
  options.kernel = kernel;
  auto const prepared = prepare(make_plan(problem, this_device(backend, 2), options));
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  prepared.run(arguments, workspace.data());
}

constexpr Backend backends[] = {Backend::reference, Backend::cpu, Backend::emulator};

// Computes d = alpha * (ones * ones) + beta * c of 16x16 by each kernel that supports it; returns their
// number.
int each_product(float of_a, float of_c, double alpha, double beta, float wanted) {
  GemmProblem problem;
  problem.a = problem.b = problem.c = problem.d = describe(DataType::f32, Shape(1, 16, 16));
  problem.epilogue.expression = epilogue::parse("alpha*acc + beta*c");
  int count = 0;
  for (Backend const backend : backends)
    for (auto const& candidate : candidates<GemmProblem>(backend)) {
      Tensor a(problem.a), b(problem.b), c(problem.c), d(problem.d);
      a.fill(of_a), b.fill(1), c.fill(of_c), d.fill(nan);
      double const scalars[] = {alpha, beta};
      try {
        run_plan(problem, backend, candidate.name,
                 {.a = a.data(), .b = b.data(), .c = c.data(), .d = d.data(), .scalars = scalars});
      } catch (Error const&) {
        continue;  // the kernel does not support the problem
      }
      ++count;
      for (Index i = 0; i < d.size(); ++i)
        if (d.get(i) != wanted && !(std::isnan(d.get(i)) && std::isnan(wanted))) {
          ADD_FAILURE() << name_of(backend) << ' ' << candidate.name << ": element " << i << " is "
                        << d.get(i) << ", not " << wanted;
          break;
        }
    }
  return count;
}

TEST(ScaledInput, BetaOfZeroDoesNotReadC) {
  EXPECT_GE(each_product(1, nan, 1, 0, 16), 5);
  EXPECT_GE(each_product(1, infinity, 0.5, 0, 8), 5);
}

TEST(ScaledInput, AlphaOfZeroDoesNotReadTheProduct) {
  EXPECT_GE(each_product(nan, 3, 0, 1, 3), 5);
  EXPECT_GE(each_product(infinity, nan, 0, 0, 0), 5);
}

TEST(ScaledInput, OtherScalarsKeepNaN) {
  EXPECT_GE(each_product(1, nan, 1, 0.5, nan), 5);
  EXPECT_GE(each_product(nan, 1, 0.5, 0, nan), 5);
}

TEST(ScaledInput, IsASelectionInComposedKernels) {
  EXPECT_EQ(epilogue::to_cuda(epilogue::parse("acc + beta*c")),
            "Real const v3 = scalar[0] == Real(0) ? Real(0) : scalar[0] * c;\n"
            "Real const v4 = acc + v3;\nreturn v4;\n");
}

TEST(Moments, OfAChannelWithAnInfinityHaveItAsMean) {
  BatchNormProblem problem;
  problem.mode = BatchNormMode::training;
  problem.x = problem.y = describe(DataType::f32, Shape(8, 3, 5, 5));
  problem.statistics = describe(DataType::f32, Shape(3));
  for (Backend const backend : {Backend::reference, Backend::emulator}) {
    Tensor x(problem.x), y(problem.y), ones(problem.statistics), mean(problem.statistics),
        variance(problem.statistics);
    for (Index i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(i % 7));
    ones.fill(1);
    x.set(40, -infinity);  // channel 1
    x.set(300, infinity);  // channel 0
    run_plan(problem, backend, "",
             {.x = x.data(),
              .scale = ones.data(),
              .bias = ones.data(),
              .y = y.data(),
              .saved_mean = mean.data(),
              .saved_variance = variance.data()});
    EXPECT_EQ(mean.get(0), infinity) << name_of(backend);
    EXPECT_EQ(mean.get(1), -infinity) << name_of(backend);
    EXPECT_TRUE(std::isfinite(mean.get(2))) << name_of(backend);
    EXPECT_TRUE(std::isnan(variance.get(0)) && std::isnan(variance.get(1))) << name_of(backend);
    EXPECT_TRUE(std::isfinite(variance.get(2))) << name_of(backend);
  }
}

// The command line cannot select this kernel, because its filters and its images have different layouts.
TEST(Convolution, WithTheBatchInnermostKeepsNaNWithinItsWindows) {
  using Direction = ConvolutionDirection;
  for (Direction const direction : {Direction::forward, Direction::data, Direction::filter})
    for (bool const in_image : {true, false}) {
      ConvolutionProblem problem;
      problem.direction = direction;
      problem.x = describe(DataType::f32, image_layout(TensorFormat::chwn, 16, 3, 9, 8));
      problem.y = describe(DataType::f32, image_layout(TensorFormat::chwn, 16, 8, 9, 8));
      problem.w = describe(DataType::f32, Shape(8, 3, 3, 3));
      problem.pad_begin[0] = problem.pad_begin[1] = problem.pad_end[0] = problem.pad_end[1] = 1;
      Tensor x(problem.x), y(problem.y), w(problem.w);
      for (Tensor* const tensor : {&x, &y, &w})
        for (Index i = 0; i < tensor->size(); ++i) tensor->set(i, static_cast<double>(i % 5 - 2));
      Tensor& spoiled = direction == Direction::filter ? (in_image ? x : y)
                        : in_image                     ? (direction == Direction::data ? y : x)
                                                       : w;
      spoiled.set(40, infinity);
      spoiled.set(spoiled.size() - 1, nan);
      Tensor& result = direction == Direction::forward ? y : direction == Direction::data ? x : w;
      std::vector<Tensor> results;
      for (int way = 0; way < 3; ++way) {
        Tensor& out = results.emplace_back(result.description());
        ConvolutionProblem::Arguments const arguments{.x = x.data(),
                                                      .w = w.data(),
                                                      .dy = y.data(),
                                                      .y = out.data(),
                                                      .dx = out.data(),
                                                      .dw = out.data()};
        if (way == 1)
          reference::run_with_padding(problem, arguments);
        else if (way == 0)
          run_plan(problem, Backend::reference, "", arguments);
        else if (make_plan(problem, this_device(Backend::cpu)).kernel == "chwn16")
          run_plan(problem, Backend::cpu, "chwn16", arguments);
        else
          GTEST_SKIP() << "chwn16 needs AVX2 with FMA";
      }
      for (Index i = 0; i < result.size(); ++i) {
        double const plain = results[0].get(i), padded = results[1].get(i), got = results[2].get(i);
        bool const right = got == plain || (std::isnan(got) && (std::isnan(plain) || std::isnan(padded)));
        ASSERT_TRUE(right) << static_cast<int>(direction) << " element " << i << " is " << got << ", not "
                           << plain;
      }
    }
}

TEST(Adam, RoundsOneMinusBetaOnce) {
  OptimizerProblem problem;
  problem.kind = OptimizerKind::adam;
  problem.parameter = problem.gradient = problem.state = describe(DataType::f32, Shape(16));
  for (Backend const backend : backends) {
    Tensor parameter(problem.parameter), gradient(problem.gradient), first(problem.state),
        second(problem.state);
    parameter.fill(0), gradient.fill(1), first.fill(0), second.fill(0);
    run_plan(problem, backend, "",
             {.parameter = parameter.data(),
              .gradient = gradient.data(),
              .velocity = first.data(),
              .second = second.data()});
    EXPECT_NEAR(second.get(3), 1 - problem.beta2, 2e-7 * (1 - problem.beta2)) << name_of(backend);
    EXPECT_NEAR(first.get(3), 1 - problem.beta1, 2e-7 * (1 - problem.beta1)) << name_of(backend);
  }
}

}  // namespace
}  // namespace cosmati
