// Reductions with partial sums in the workspace, under a workspace limit.
#include <gtest/gtest.h>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/softmax.h"
#include "src/plan/primitive/lower.h"

namespace cosmati {
namespace {

Device device(Backend backend = Backend::emulator) {
  Device device = this_device(Backend::emulator);
  device.backend = backend;
  device.gpu = describe_gpu("h200");
  return device;
}

PlanOptions within(std::size_t bytes) {
  PlanOptions options;
  options.max_workspace = bytes;
  return options;
}

ReduceProblem sum_of(Index terms) {
  return {ReduceOperation::sum, describe(DataType::f32, Shape(terms, 3)),
          describe(DataType::f32, Shape(1, 3))};
}

TEST(ReductionLimit, FewerPartsWhereTheirSumsDoNotFit) {
  for (Backend const backend : {Backend::emulator, Backend::cuda}) {
    ReduceProblem const problem = sum_of(1 << 20);
    auto const free = make_plan(problem, device(backend));
    ASSERT_GT(free.workspace_bytes, 1000u);
    for (std::size_t limit : {free.workspace_bytes - 1, free.workspace_bytes / 3, std::size_t{256}}) {
      auto const plan = make_plan(problem, device(backend), within(limit));
      EXPECT_LE(plan.workspace_bytes, limit);
      EXPECT_GT(plan.workspace_bytes, 0u);
      EXPECT_EQ(plan::program_of(plan).workspace_bytes, plan.workspace_bytes);
    }
    auto const none = make_plan(problem, device(backend), within(0));
    EXPECT_EQ(none.workspace_bytes, 0u);
    EXPECT_EQ(plan::program_of(none).passes.size(), 1u);
    EXPECT_EQ(make_plan(problem, device(backend), within(free.workspace_bytes)).workspace_bytes,
              free.workspace_bytes);
  }
}

// More terms than an unsigned can count: planned instantly, with enough parts to saturate the memory.
TEST(ReductionLimit, BillionsOfTerms) {
  for (Index const terms : {Index{3'000'000'000}, Index{1} << 32}) {
    auto const plan = make_plan(sum_of(terms), device(Backend::cuda));
    auto const passes = plan::program_of(plan).passes;
    ASSERT_GT(passes.size(), 2u);
    for (std::size_t i = 0; i + 1 < passes.size(); ++i) {
      EXPECT_LE(passes[i].parameters.terms, 1u << 30);
      EXPECT_GT(passes[i].blocks * passes[i].splits, 132u) << "pass " << i;
    }
  }
  SoftmaxProblem softmax;
  softmax.x = softmax.y = describe(DataType::f32, Shape(1, 3'000'000'000));
  auto const refused = plan::lower_within(~std::size_t{0}, softmax, device(Backend::cuda));
  EXPECT_NE(refused.refusal.find("rows of 3000000000 terms"), std::string::npos) << refused.refusal;
  // Two axes that no common stride covers; the inner one is too long for one part.
  ReduceProblem odd = sum_of(1);
  odd.x = describe(DataType::f16, Shape(2, Index{1} << 31));
  odd.x.layout.stride[0] += 1;
  odd.y = describe(DataType::f16, Shape(1, 1));
  auto const axes = plan::lower_within(~std::size_t{0}, odd, device(Backend::cuda));
  EXPECT_NE(axes.refusal.find("terms along one of several axes"), std::string::npos) << axes.refusal;
}

TEST(ReductionLimit, ThePreparedProgramKeepsIt) {
  ReduceProblem const problem = sum_of(20000);
  Tensor x(problem.x), y(problem.y);
  for (Index i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(i % 7));
  ASSERT_GT(make_plan(problem, device()).workspace_bytes, 512u);
  for (std::size_t const limit : {std::size_t{0}, std::size_t{512}, ~std::size_t{0}}) {
    auto const prepared = prepare(make_plan(problem, device(), within(limit)));
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes()) + 1));
    y.fill(-1);
    prepared.run({.x = x.data(), .y = y.data()}, workspace.data());
    for (Index column = 0; column < 3; ++column) {
      double sum = 0;
      for (Index row = 0; row < 20000; ++row) sum += static_cast<double>((row * 3 + column) % 7);
      EXPECT_EQ(y.get(column), sum) << "within " << limit;
    }
  }
}

TEST(ReductionLimit, BiasGradientsAndBatchNormToo) {
  ConvolutionProblem bias;
  bias.direction = ConvolutionDirection::bias;
  bias.y = describe(DataType::f32, Shape(64, 2, 64, 64));
  bias.db = describe(DataType::f32, Shape(2));
  ASSERT_GT(make_plan(bias, device()).workspace_bytes, 0u);
  EXPECT_EQ(make_plan(bias, device(), within(0)).workspace_bytes, 0u);
  EXPECT_NO_THROW((void)prepare(make_plan(bias, device(), within(0))));

  ConvolutionProblem both = bias;
  both.direction = ConvolutionDirection::filter;
  both.x = describe(DataType::f32, Shape(64, 3, 66, 66));
  both.w = describe(DataType::f32, Shape(2, 3, 3, 3));
  auto const plan = make_plan(both, device(), within(0));
  EXPECT_EQ(plan.workspace_bytes, 0u);
  EXPECT_EQ(plan.recipe.bias_bytes, 0u);
  PlanOptions apart;
  apart.kernel = "implicit_gemm";  // direct_tiled computes the bias gradient along with the filter gradient
  auto const some = make_plan(both, device(), apart);
  EXPECT_GT(some.recipe.bias_bytes, 0u);
  EXPECT_LE(some.recipe.bias_bytes, some.workspace_bytes);

  BatchNormProblem norm;
  norm.mode = BatchNormMode::training;
  norm.x = norm.y = bias.y;
  norm.statistics = bias.db;
  auto const free = make_plan(norm, device());
  ASSERT_GT(free.workspace_bytes, 0u);
  EXPECT_LT(make_plan(norm, device(), within(free.workspace_bytes - 1)).workspace_bytes,
            free.workspace_bytes);
}

}  // namespace
}  // namespace cosmati
