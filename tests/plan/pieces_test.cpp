// Products of bf16 and tf32 pieces as plans: only on request, where they are predicted to be faster and their
// error is permitted; their results in the emulator against the stated error.
#include "src/plan/gemm/pieces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cosmati/ops/error.h"
#include "cosmati/ops/tensor.h"
#include "src/plan/gemm/program/program.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

GemmProblem by_pieces(ComputeMode mode, Index m, Index n, Index k, std::string const& letters,
                      std::string const& expression = "acc") {
  GemmProblem problem = product(DataType::f32, DataType::f32, m, n, k, letters, expression);
  problem.compute = mode;
  return problem;
}

char const* kernel_of(ComputeMode mode) {
  return mode == ComputeMode::tf32x3 ? "tf32_products" : "bf16_products";
}

Considered const& entry_of(Plan<GemmProblem> const& plan, std::string const& kernel = "bf16_products") {
  return entry_of(plan.considered, kernel);
}

TEST(Bf16Products, OnlyOnRequest) {
  Device const h200 = gpu_device("h200");
  auto const exact = make_plan(product(DataType::f32, DataType::f32, 4096, 4096, 4096, "tn"), h200);
  EXPECT_NE(entry_of(exact).refusal.find("only on request"), std::string::npos) << entry_of(exact).refusal;
  for (ComputeMode const mode : {ComputeMode::bf16x3, ComputeMode::bf16x6}) {
    auto const plan = make_plan(by_pieces(mode, 4096, 4096, 4096, "nn"), h200);
    EXPECT_EQ(plan.kernel, "bf16_products");
    EXPECT_TRUE(plan.recipe.policy.promotes);
  }
  EXPECT_NE(make_plan(by_pieces(ComputeMode::bf16x6, 16, 16, 16, "nn"), h200).kernel, "bf16_products")
      << "small products are faster without a pass";
}

TEST(Bf16Products, StateTheirErrors) {
  auto const error = [](ComputeMode mode, char const* gpu) {
    return entry_of(make_plan(by_pieces(mode, 4096, 4096, 4096, "tn"), gpu_device(gpu))).expected_error;
  };
  EXPECT_NEAR(error(ComputeMode::bf16x3, "h200"), 4.5e-6, 0.2e-6);
  EXPECT_NEAR(error(ComputeMode::bf16x6, "h200"), 1.6e-7, 0.2e-7);
  EXPECT_NEAR(error(ComputeMode::bf16x9, "h200"), 1.6e-7, 0.2e-7);
  PlanOptions strict;
  strict.max_error = 2e-6;
  Device const h200 = gpu_device("h200");
  EXPECT_NE(make_plan(by_pieces(ComputeMode::bf16x3, 4096, 4096, 4096, "tn"), h200, strict).kernel,
            "bf16_products");
  EXPECT_EQ(make_plan(by_pieces(ComputeMode::bf16x6, 4096, 4096, 4096, "tn"), h200, strict).kernel,
            "bf16_products");
}

TEST(Bf16Products, RefuseWithReasons) {
  Device const h200 = gpu_device("h200");
  auto const refusal = [&](GemmProblem const& problem, PlanOptions const& options = {}) {
    return entry_of(make_plan(problem, h200, options)).refusal;
  };
  GemmProblem pointers = by_pieces(ComputeMode::bf16x6, 256, 256, 256, "tn");
  pointers.by_pointers = true;
  EXPECT_EQ(refusal(pointers), "does not support arrays of pointers");
  EXPECT_EQ(refusal(by_pieces(ComputeMode::bf16x6, 256, 256, 0, "tn")), "there is nothing to multiply");
  PlanOptions small;
  small.max_workspace = 1 << 20;
  EXPECT_NE(refusal(by_pieces(ComputeMode::bf16x6, 512, 512, 512, "tn"), small).find("of workspace"),
            std::string::npos);
  PlanOptions invariant;
  invariant.batch_invariant = true;
  EXPECT_NE(refusal(by_pieces(ComputeMode::bf16x6, 512, 512, 512, "tn"), invariant).find("batch-invariant"),
            std::string::npos);
  GemmProblem halves = product(DataType::f16, DataType::f16, 64, 64, 64, "tn");
  halves.compute = ComputeMode::bf16x6;
  try {
    make_plan(halves, h200);
    FAIL() << "f16 has no pieces";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("bf16x6 splits factors of f32"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(
      entry_of(make_plan(by_pieces(ComputeMode::bf16x6, 64, 64, 64, "tn"), gpu_device("t4"))).refusal.empty(),
      false)
      << "a T4 multiplies no bf16";
}

// The largest error of an element relative to the sum of the absolute values of its products, and the
// standard deviation of the errors relative to that of the results.
struct Errors {
  double largest = 0, deviation = 0;
};
Errors errors_of(GemmProblem const& problem, char const* multiply) {
  PlanOptions options;
  options.kernel = kernel_of(problem.compute);
  options.policy = PolicyRequest(std::string("multiply=") + multiply);
  auto const plan = make_plan(problem, this_device(Backend::emulator), options);
  std::mt19937 bits(5);
  std::normal_distribution<double> values;
  Tensor a(problem.a), b(problem.b), d(problem.d);
  for (Tensor* const factor : {&a, &b})
    for (Index i = 0; i < factor->size(); ++i) factor->set(i, values(bits));
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(plan.workspace_bytes)));
  prepare(plan).run({.a = a.data(), .b = b.data(), .d = d.data()}, workspace.data());
  Errors errors;
  double squares = 0, results = 0;
  for (Index m = 0; m < problem.m(); ++m)
    for (Index n = 0; n < problem.n(); ++n) {
      double sum = 0, magnitude = 0;
      for (Index k = 0; k < problem.k(); ++k) {
        double const term = a.get(m * problem.k() + k) * b.get(k * problem.n() + n);
        sum += term;
        magnitude += std::fabs(term);
      }
      double const error = d.get(m * problem.n() + n) - sum;
      errors.largest = std::max(errors.largest, std::fabs(error) / magnitude);
      squares += error * error;
      results += sum * sum;
    }
  errors.deviation = std::sqrt(squares / results);
  return errors;
}

// verify's bound for sums of k products, and the error of the products.
double bound(ComputeMode mode, Index k) {
  auto const terms = static_cast<double>(k);
  return std::min(terms + 4, 6 * std::sqrt(terms) + 4) * 0x1p-24 + largest_product_error(mode);
}

TEST(Bf16Products, KeepTheirBoundAndMissThatOfMoreProducts) {
  for (char const* const multiply : {"wgmma", "mma"})
    for (Index const k : {Index{1}, Index{7}, Index{24}}) {
      for (ComputeMode const mode : {ComputeMode::bf16x3, ComputeMode::bf16x6, ComputeMode::bf16x9})
        EXPECT_LE(errors_of(by_pieces(mode, 33, 40, k, "nt"), multiply).largest, bound(mode, k))
            << name_of(mode) << ' ' << multiply << ' ' << k;
      EXPECT_GT(errors_of(by_pieces(ComputeMode::bf16x3, 33, 40, k, "nt"), multiply).largest,
                bound(ComputeMode::bf16x6, k))
          << "three products pass as six";
    }
}

TEST(Bf16Products, HaveTheStatedDeviation) {
  auto const problem = by_pieces(ComputeMode::bf16x3, 33, 40, 64, "tn");
  PlanOptions options;
  options.kernel = "bf16_products";
  double const stated = entry_of(make_plan(problem, this_device(Backend::emulator), options)).expected_error;
  double const measured = errors_of(problem, "wgmma").deviation;
  EXPECT_GT(measured, 0.7 * stated);
  EXPECT_LT(measured, 1.3 * stated);
}

TEST(Tf32Products, OnlyOnRequestAndByMmaSync) {
  GemmProblem const problem = by_pieces(ComputeMode::tf32x3, 4096, 4096, 4096, "tn");
  auto const a100 = make_plan(problem, gpu_device("a100"));
  EXPECT_EQ(a100.kernel, "tf32_products");
  EXPECT_EQ(a100.recipe.policy.multiply, Multiply::mma);
  EXPECT_NE(entry_of(a100).refusal.find("only on request"), std::string::npos);
  auto const exact = make_plan(by_pieces(ComputeMode::exact, 4096, 4096, 4096, "tn"), gpu_device("a100"));
  EXPECT_NE(entry_of(exact, "tf32_products").refusal.find("only on request"), std::string::npos);
  EXPECT_NE(exact.kernel, "tf32_products");
  EXPECT_FALSE(entry_of(make_plan(problem, gpu_device("t4")), "tf32_products").refusal.empty());
  // 0.45 / 2 units for each of the k / 8 truncated sums, plus their deviation.
  EXPECT_NEAR(entry_of(a100, "tf32_products").expected_error, 7.7e-6, 0.1e-6);
}

TEST(Tf32Products, KeepTheirBound) {
  for (Index const k : {Index{1}, Index{7}, Index{24}}) {
    GemmProblem const problem = by_pieces(ComputeMode::tf32x3, 33, 40, k, "nt");
    EXPECT_LE(errors_of(problem, "mma").largest, bound(ComputeMode::tf32x3, k)) << k;
    EXPECT_GT(errors_of(by_pieces(ComputeMode::bf16x3, 33, 40, k, "nt"), "mma").largest,
              bound(ComputeMode::tf32x3, k))
        << "three products of bf16 pass as three of tf32";
  }
}

TEST(Bf16Products, SplitBothOperandsFirst) {
  auto const plan = make_plan(by_pieces(ComputeMode::bf16x6, 4096, 4096, 4096, "nn"), gpu_device("h200"));
  auto const program = plan::program_of(plan);
  ASSERT_EQ(program.kernels.size(), 3u);
  EXPECT_EQ(program.kernels[0].entry, "pieces_kernel");
  EXPECT_EQ(
      program.kernels[0].traits,
      "cosmati::PiecesPolicy{.products = 6, .piece_bytes = 2, .is_b = false, .width = 4, .transposed = true}");
  EXPECT_EQ(
      program.kernels[1].traits,
      "cosmati::PiecesPolicy{.products = 6, .piece_bytes = 2, .is_b = true, .width = 4, .transposed = false}");
  EXPECT_EQ(program.main, 2u);
  EXPECT_NE(program.kernels[2].traits.find(".promotes = true"), std::string::npos);
  EXPECT_EQ(program.workspace.bytes, plan.workspace_bytes);
}

}  // namespace
}  // namespace cosmati
