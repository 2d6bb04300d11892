// When plans use gemv, for few rows or columns, and tiny, for batches of tiny matrices.
#include <gtest/gtest.h>

#include <iterator>

#include "cosmati/gemm/kernel.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/program/program.h"
#include "src/plan/gemm/small/gemv.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

constexpr char const* layouts[] = {"nn", "nt", "tn", "tt"};

GemmProblem batch_of(DataType type, Index m, Index n, Index k, Index batch) {
  GemmProblem problem = product(type, type, m, n, k, "nn");
  for (TensorDescription* tensor : {&problem.a, &problem.b, &problem.d}) {
    Index const rows = tensor->extent(1), columns = tensor->extent(2);
    tensor->layout = Layout{{batch, rows, columns}, {rows * columns, 1, rows}};
  }
  return problem;
}

std::string complaint(GemmProblem const& problem, char const* gpu, PlanOptions const& options) {
  try {
    make_plan(problem, gpu_device(gpu), options);
  } catch (Error const& error) {
    return error.what();
  }
  return "accepted";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(FewRowsChoice, OneRowOrColumnIsStreamed) {
  for (char const* gpu : {"t4", "a100", "rtx4090", "h200", "b200"})
    for (DataType const type : {DataType::f32, DataType::f64})
      for (char const* letters : layouts)
        for (auto const& [m, n] : {std::pair<Index, Index>{1, 4096}, {4096, 1}, {3, 5000}}) {
          auto const plan = make_plan(product(type, type, m, n, 4096, letters), gpu_device(gpu));
          EXPECT_EQ(plan.kernel, "gemv") << gpu << ' ' << name_of(type) << ' ' << letters << ' ' << m;
        }
}

TEST(FewRowsChoice, UnalignedRowsAreNotCopied) {
  auto const plan =
      make_plan(product(DataType::bf16, DataType::bf16, 1, 4099, 4093, "tn"), gpu_device("h200"));
  EXPECT_EQ(plan.kernel, "gemv");
  EXPECT_EQ(plan.workspace_bytes, 0u);
  EXPECT_HAS(plan::program_of(plan).kernels.at(0).traits, "UnalignedSource<bf16, Along::k>");
}

TEST(FewRowsChoice, BatchesOfTinyMatricesTakeAWarpEach) {
  for (char const* gpu : {"t4", "a100", "rtx4090", "h200", "b200"})
    for (DataType const type : {DataType::f32, DataType::bf16, DataType::f16})
      for (Index const size : {4, 16, 32}) {
        auto const plan = make_plan(batch_of(type, size, size, size, 4096), gpu_device(gpu));
        EXPECT_EQ(plan.kernel, "tiny") << gpu << ' ' << name_of(type) << ' ' << size;
        Multiply const multiply = plan.recipe.policy.multiply;
        if (size == 32) {
          EXPECT_EQ(multiply == Multiply::mma, size_of(type) == 2 && gpu != std::string("t4"))
              << gpu << ' ' << name_of(type) << ' ' << size;
        }
      }
}

// A launch has at most 65535 blocks along z, each with several matrices.
TEST(FewRowsChoice, LargeBatchesOfTinyMatricesTakeSeveralLaunches) {
  auto const plan = make_plan(batch_of(DataType::f32, 8, 8, 8, 600000), gpu_device("h200"));
  ASSERT_EQ(plan.kernel, "tiny");
  int const together = plan.recipe.policy.matrices;
  auto const program = plan::program_of(plan);
  Index matrices = 0;
  for (auto const& step : program.steps) {
    Index const blocks = std::get<program::Launch>(step).grid.z;
    EXPECT_LE(blocks, 65535);
    matrices += blocks * together;
  }
  Index const most = Index{65535} * together;
  EXPECT_EQ(std::ssize(program.steps), (600000 + most - 1) / most);
  EXPECT_GE(matrices, 600000);
}

TEST(FewRowsChoice, LargeProductsDoNot) {
  for (char const* kernel : {"gemv", "tiny"}) {
    PlanOptions options;
    options.kernel = kernel;
    std::string const text =
        complaint(product(DataType::f32, DataType::f32, 100, 200, 300, "nn"), "h200", options);
    EXPECT_HAS(text, kernel == std::string("gemv")
                         ? "m = 100, n = 200; gemv is for at most 8 rows or 8 columns"
                         : "100x200x300; tiny multiplies matrices of at most 32 rows");
  }
}

TEST(FewRowsChoice, RejectsWhatTheLoopsLack) {
  PlanOptions options;
  options.kernel = "gemv";
  GemmProblem const row = product(DataType::f16, DataType::f16, 1, 512, 512, "tn");
  options.policy = "multiply=mma";
  EXPECT_HAS(complaint(row, "h200", options), "multiply mma was requested; gemv has fma");
  options.policy = "partition=stream_k";
  EXPECT_NE(complaint(row, "h200", options), "accepted");
  options.policy = "block_m=1,warp_m=1,thread_m=1,thread_n=3";
  EXPECT_HAS(complaint(row, "h200", options), "gemv needs block_n in multiples of warp_n");
  options.policy = "large";
  EXPECT_HAS(complaint(row, "h200", options), "gemv has no policy 'large'");
  options.policy = {};
  options.batch_invariant = true;
  EXPECT_HAS(complaint(row, "h200", options), "in the same order for every m");
  options = {};
  GemmProblem halves = row;
  halves.accumulator = DataType::f16;
  options.kernel = "gemv";
  EXPECT_HAS(complaint(halves, "h200", options), "sums in f16 require another kernel");
}

TEST(FewRowsChoice, PartsOfKFitTheWorkspace) {
  PlanOptions options;
  options.kernel = "gemv";
  options.policy = "partition=split_k";
  auto const plan =
      make_plan(product(DataType::f32, DataType::f32, 3, 130, 100000, "tn"), gpu_device("h200"), options);
  GemmPolicy const& p = plan.recipe.policy;
  ASSERT_GT(plan.recipe.splits, 1);
  Index const tiles = (130 + p.block_n - 1) / p.block_n;
  EXPECT_GE(plan.recipe.partial_bytes,
            static_cast<std::size_t>(tiles * (plan.recipe.splits - 1) * plan::gemv_slot_sums(p) * 4));
  EXPECT_GE(plan::gemv_slot_sums(p), p.block_m * p.block_n);
}

}  // namespace
}  // namespace cosmati
