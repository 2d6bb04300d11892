// The expected error that products state, against the error of their results.
#include "src/plan/stated_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/tensor.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

Tensor normal(TensorDescription const& description, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> values;
  Tensor tensor(description);
  for (Index i = 0; i < tensor.size(); ++i) tensor.set(i, values(bits));
  return tensor;
}

// The standard deviation of the results' errors over that of the results.
double deviation(Plan<GemmProblem> const& plan) {
  GemmProblem const& problem = plan.problem;
  GemmProblem exact = problem;
  exact.d.type = DataType::f64;
  for (TensorDescription* const factor : {&exact.a, &exact.b})  // including the bits that tf32 lacks
    if (factor->type == DataType::tf32) factor->type = DataType::f32;
  Tensor const a = normal(exact.a, 1), b = normal(exact.b, 2);
  Tensor ours(problem.d), truth(exact.d);
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(plan.workspace_bytes)));
  prepare(plan).run({.a = a.data(), .b = b.data(), .d = ours.data()}, workspace.data());
  prepare(make_plan(exact, this_device(Backend::reference)))
      .run({.a = a.data(), .b = b.data(), .d = truth.data()});
  double error = 0, all = 0;
  for (Index i = 0; i < ours.size(); ++i) {
    error += std::pow(ours.get(i) - truth.get(i), 2);
    all += std::pow(truth.get(i), 2);
  }
  return std::sqrt(error / all);
}

double stated(GemmProblem const& problem, Device const& device, std::string const& kernel) {
  return entry_of(make_plan(problem, device).considered, kernel).expected_error;
}

TEST(StatedError, OfSumsOneByOne) {
  auto const problem = product(DataType::f32, DataType::f32, 24, 20, 300, "tn");
  PlanOptions options;
  options.kernel = "double_buffered";
  auto const plan = make_plan(problem, this_device(Backend::emulator), options);
  double const expected = entry_of(plan.considered, options.kernel).expected_error;
  EXPECT_NEAR(expected, 0x1p-24 * std::sqrt(0.09 * 300), 1e-9);
  EXPECT_GT(deviation(plan), 0.5 * expected);
  EXPECT_LT(deviation(plan), 1.5 * expected);
}

TEST(StatedError, OfTheProcessorIsNotExceeded) {  // its kernels sum in several parts
  auto const plan =
      make_plan(product(DataType::f32, DataType::f32, 24, 20, 300, "nn"), this_device(Backend::cpu));
  double const expected = plan.chosen().expected_error;
  EXPECT_LT(deviation(plan), 1.5 * expected);
  EXPECT_GT(deviation(plan), 0.1 * expected);
}

TEST(StatedError, OfFactorsThatTensorCoresCut) {
  auto const problem = product(DataType::tf32, DataType::f32, 32, 32, 64, "tn");
  PlanOptions options;
  options.kernel = "warp_specialized";
  auto const plan = make_plan(problem, this_device(Backend::emulator), options);
  double const expected = entry_of(plan.considered, options.kernel).expected_error;
  EXPECT_NEAR(expected, 1.575 * 0x1p-11, 1e-6);
  EXPECT_GT(deviation(plan), 0.8 * expected);
  EXPECT_LT(deviation(plan), 1.2 * expected);
}

TEST(StatedError, ByTypeOfTheSums) {
  Device const gpu = gpu_device("h200"), host = this_device(Backend::cpu);
  auto halves = product(DataType::f16, DataType::f16, 128, 128, 100, "tn");
  EXPECT_NEAR(stated(halves, gpu, "multistage"), 3 * 0x1p-24, 1e-12);
  halves.accumulator = DataType::f16;
  EXPECT_NEAR(stated(halves, gpu, "multistage"), 3 * 0x1p-11, 1e-9);
  EXPECT_NEAR(stated(halves, host, "converted"), 3 * 0x1p-24, 1e-12);
  EXPECT_NEAR(stated(halves, host, "reference"), 3 * 0x1p-53, 1e-20);
  EXPECT_EQ(stated(product(DataType::s8, DataType::s32, 128, 128, 128, "tn"), gpu, "multistage"), 0);
  EXPECT_EQ(stated(product(DataType::e4m3, DataType::f32, 128, 128, 128, "tn"), gpu, "warp_specialized"), 0);
}

TEST(StatedError, LimitsTheChoiceOnTheProcessor) {
  auto const problem = product(DataType::f32, DataType::f32, 24, 20, 300, "nn");
  PlanOptions options;
  options.max_error = 1e-10;
  EXPECT_EQ(make_plan(problem, this_device(Backend::cpu), options).kernel, "reference");
  ConvolutionProblem convolution;
  convolution.x = describe(DataType::f32, {2, 16, 9, 9});
  convolution.w = describe(DataType::f32, {8, 16, 3, 3});
  convolution.y = describe(DataType::f32, {2, 8, 7, 7});
  auto const plan = make_plan(convolution, this_device(Backend::cpu));
  EXPECT_NEAR(plan.chosen().expected_error, 0x1p-24 * std::sqrt(0.09 * 144), 1e-9);
  EXPECT_LT(make_plan(convolution, this_device(Backend::cpu), options).considered.back().expected_error,
            1e-14);
}

}  // namespace
}  // namespace cosmati
