// Plans of split-K in parallel: a product whose results are the parts, and the kernel that adds them.
#include "src/plan/gemm/sum_of_parts.h"

#include <gtest/gtest.h>

#include "src/plan/gemm/model.h"
#include "src/plan/gemm/operand_paths.h"
#include "src/plan/gemm/partition.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/program/program.h"
#include "src/plan/gemm/recipe/recipe.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/tiles/fitted_tiles.h"
#include "src/plan/gemm/tuning.h"
#include "src/plan/gemm/tuning_candidates.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

Plan<GemmProblem> plan_of(GemmProblem const& problem, std::string const& policy,
                          std::size_t maximum = ~std::size_t{0}) {
  PlanOptions options;
  options.policy = policy;
  options.kernel = "warp_specialized";
  options.max_workspace = maximum;
  return make_plan(problem, gpu_device("h200"), options);
}
std::string complaint(GemmProblem const& problem, std::string const& policy,
                      std::size_t maximum = ~std::size_t{0}) {
  try {
    (void)plan_of(problem, policy, maximum);
  } catch (Error const& error) {
    return error.what();
  }
  return "accepted";
}
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(SumOfParts, PartsFillTheMultiprocessors) {
  GemmProblem const problem = product(DataType::bf16, DataType::bf16, 250, 256, 131072, "tn");
  auto const plan = plan_of(problem, "medium,partition=split_k_parallel");  // 4 tiles
  EXPECT_EQ(plan.recipe.splits % 33, 0);
  EXPECT_EQ(plan.recipe.flag_bytes, 0u);
  EXPECT_EQ(plan.recipe.partial_bytes,
            static_cast<std::size_t>(plan.recipe.splits) * 256 * 252 * 4);  // d is transposed
  EXPECT_EQ(plan.workspace_bytes, plan.recipe.partial_bytes);
  EXPECT_HAS(to_string(plan.recipe), "splits, added by another kernel");
  EXPECT_EQ(plan.recipe.policy.epilogue, EpilogueSchedule::staged);  // rows of 250 floats
}

TEST(SumOfParts, TheEpilogueIsThatOfTheSecondKernel) {
  GemmProblem const problem =
      product(DataType::bf16, DataType::bf16, 256, 256, 65536, "tn", "gelu(acc + bias[n])");
  program::Program const program = plan::program_of(plan_of(problem, "medium,partition=split_k_parallel"));
  ASSERT_EQ(program.kernels.size(), 2u);
  ASSERT_EQ(program.steps.size(), 2u);
  std::string const main = program::text_of(program.kernels[program.main]);
  EXPECT_EQ(program.main, 0u);
  EXPECT_HAS(main, "IdentityEpilogue<f32>");
  EXPECT_HAS(main, "TensorDestination<f32>");
  EXPECT_EQ(main.find("ComposedFunction"), std::string::npos) << main;
  std::string const sum = program::text_of(program.kernels[1]);
  EXPECT_HAS(sum,
             "SumOfPartsTraits<SumOfPartsBlock{.groups = 8}, f32, ExpressionEpilogue<ComposedFunction, ");
  EXPECT_HAS(sum, "StridedDestination<bf16, 8>");
  EXPECT_TRUE(program.kernels[1].starts_early);
  GemmProblem integers = product(DataType::s8, DataType::s32, 256, 256, 65536, "tn");
  EXPECT_HAS(
      program::text_of(plan::program_of(plan_of(integers, "medium,partition=split_k_parallel")).kernels[1]),
      "SumOfPartsTraits<SumOfPartsBlock{.groups = 8}, s32, IdentityEpilogue<s32>, ");
}

TEST(SumOfParts, RefusalsGiveTheReason) {
  GemmProblem problem = product(DataType::bf16, DataType::bf16, 256, 256, 65536, "tn");
  EXPECT_HAS(complaint(problem, "medium,partition=split_k_parallel", 1000),
             "bytes of workspace; at most 1000");
  EXPECT_HAS(complaint(product(DataType::bf16, DataType::bf16, 256, 256, 64, "tn"),
                       "medium,partition=split_k_parallel"),
             "with at least 2 steps of k");
  problem.by_pointers = true;
  EXPECT_HAS(complaint(problem, "medium,partition=split_k_parallel"), "no arrays of pointers");
}

TEST(SumOfParts, ALineOfATuningFileTellsIt) {
  GemmProblem const problem = product(DataType::bf16, DataType::bf16, 256, 256, 65536, "tn");
  auto const plan = plan_of(problem, "medium,partition=split_k_parallel");
  TuningLine const line =
      plan::line_of(problem, gpu_device("h200").gpu, "", plan.recipe.policy, plan.recipe.splits);
  EXPECT_HAS(line.policy, ",partition=split_k_parallel");
  auto const candidate = plan::tuning_candidate_of(problem, gpu_device("h200"), {}, line);
  ASSERT_EQ(candidate.size(), 1u);
  EXPECT_HAS(candidate[0].recipe, "added by another kernel");
}

TEST(SumOfParts, GroupsOfABlockFollowTheParts) {
  GemmRecipe recipe;
  for (auto const& [splits, groups] : {std::pair{2, 1}, {8, 1}, {9, 2}, {33, 8}, {500, 8}}) {
    recipe.splits = splits;
    EXPECT_EQ(plan::sum_of_parts_block(recipe).groups, groups) << splits;
  }
}

struct Size {
  Index m, n, k;
};

// Checks the lower bound by which the planner skips divisions of k and entire policies against predictions;
// returns the number of divisions compared.
int expect_bound(GemmProblem const& problem, Gpu const& gpu) {
  int compared = 0;
  for (plan::OperandPath const& path : plan::operand_paths(problem)) {
    plan::CanonicalGemm const form = plan::repacked(path.form, path.passes);
    std::vector<plan::NamedPolicy> policies =
        plan::product_policies(MainLoop::warp_specialized, Multiply::wgmma, form.sum, size_of(form.a.type));
    plan::append_tiles(policies, form, gpu, EpilogueSchedule::direct, {"64x96_4x1", "128x64_2x1"});
    plan::append_tiles(policies, form, gpu, EpilogueSchedule::direct, {});
    for (plan::NamedPolicy const& named : policies) {
      GemmRecipe recipe = plan::recipe_for(MainLoop::warp_specialized, form);
      recipe.policy = named.policy;
      recipe.repack_a = path.passes.repack_a;
      recipe.repack_b = path.passes.repack_b;
      double const repack = plan::predict_repack(recipe, gpu);
      plan::Volume const volume = plan::volume_of(form, recipe);
      double const least = plan::least_seconds_of_parts(recipe, form, gpu, volume, 1);
      for (Partition const partition : {Partition::tiles, Partition::stream_k}) {
        if (!plan::partition_violation(recipe, {partition, 1}, form).empty()) continue;
        plan::divide(recipe, {partition, 1}, form, plan::resident_blocks(recipe, form, gpu));
        EXPECT_LE(least, repack + plan::predict_seconds(recipe, form, gpu, volume))
            << named.name << ", " << name_of(partition) << ", k = " << form.k;
      }
      for (int splits : {2, 8}) {
        Partition const parallel = Partition::split_k_parallel;
        if (!plan::partition_violation(recipe, {parallel, splits}, form).empty()) continue;
        plan::divide(recipe, {parallel, splits}, form, plan::resident_blocks(recipe, form, gpu));
        EXPECT_LE(least, repack + plan::predict_seconds(recipe, plan::kernel_form(form, parallel), gpu))
            << named.name << ", " << splits << " parts, k = " << form.k;
      }
      for (int splits : {2, 3, 8, 20, 64}) {
        if (!plan::partition_violation(recipe, {Partition::split_k, splits}, form).empty()) continue;
        plan::divide(recipe, {Partition::split_k, splits}, form, plan::resident_blocks(recipe, form, gpu));
        double const bound = plan::least_seconds_of_parts(recipe, form, gpu, volume, splits),
                     predicted = repack + plan::predict_seconds(recipe, form, gpu, volume);
        EXPECT_LE(bound, predicted) << named.name << ", " << splits << " splits, k = " << form.k;
        EXPECT_LE(least, predicted) << named.name << ", " << splits << " splits, k = " << form.k;
        // The bound is not far below the prediction if every block multiplies for a while.
        if (splits <= 8 && 8 * splits * named.policy.cluster_k <= volume.steps) {
          EXPECT_GT(bound, 0.1 * predicted) << named.name << ", " << splits << " splits, k = " << form.k;
        }
        ++compared;
      }
    }
  }
  return compared;
}

TEST(SumOfParts, TheBoundOfSplitKIsBelowEveryPrediction) {
  int compared = 0;
  for (char const* gpu : {"h200", "h100"})
    for (Size s : {Size{521, 523, 16381},
                   {64, 64, 131072},
                   {256, 256, 16384},
                   {16, 8192, 8192},
                   {4096, 4096, 4096},
                   // A single round of blocks.
                   {384, 384, 1536},
                   {197, 2880, 2880},
                   {8, 2560, 320},
                   {128, 5120, 3072}})
      for (DataType type : {DataType::bf16, DataType::tf32, DataType::s8})
        for (char const* letters : {"tn", "nn"})
          compared +=
              expect_bound(testing::product(type, type == DataType::s8 ? DataType::s32 : DataType::f32, s.m,
                                            s.n, s.k, letters),
                           testing::gpu_device(gpu).gpu);
  EXPECT_GT(compared, 5000);
}

}  // namespace
}  // namespace cosmati
