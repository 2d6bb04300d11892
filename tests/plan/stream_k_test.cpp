// The ranges of steps that stream-K assigns to blocks, and when a plan uses it.
#include <gtest/gtest.h>

#include <vector>

#include "cosmati/gemm/steps.h"
#include "src/plan/gemm/launch.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/tuning.h"
#include "src/plan/gemm/tuning_candidates.h"
#include "src/plan/gemm/warp_specialized.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

TEST(StreamK, RangesAreEqualAndLeaveNothingOut) {
  for (int steps : {1, 2, 7, 12, 100})
    for (int parts : {1, 2, 3, 7, 12, 13, 40}) {
      int next = 0;
      for (int part = 0; part < parts; ++part) {
        StepRange const range = part_of_steps(steps, part, parts);
        EXPECT_EQ(range.first, next);
        EXPECT_LE(range.last - range.first, steps / parts + 1);
        EXPECT_GE(range.last - range.first, steps / parts);
        for (int step = range.first; step < range.last; ++step)
          EXPECT_EQ(part_with_step(steps, parts, step), part) << steps << " steps, step " << step;
        next = range.last;
      }
      EXPECT_EQ(next, steps);
    }
}

TEST(StreamK, PiecesAreWhatARangeHasOfEachTile) {
  constexpr PieceOfTile head = last_piece({3, 17}, 5), whole = last_piece({3, 15}, 5),
                        tail = last_piece({3, 5}, 5);
  static_assert(head.tile == 3 && head.steps.first == 0 && head.steps.last == 2);
  static_assert(whole.tile == 2 && whole.steps.first == 0 && whole.steps.last == 5);
  static_assert(tail.tile == 0 && tail.steps.first == 3 && tail.steps.last == 5);
  constexpr PieceOfTile middle = last_piece({11, 13}, 5);
  static_assert(middle.tile == 2 && middle.steps.first == 1 && middle.steps.last == 3);
}

TEST(StreamK, ALastWaveThatIsNotFullIsStreamedWithOneBeforeIt) {
  EXPECT_EQ(tiles_to_stream(264, 132), 0);
  EXPECT_EQ(tiles_to_stream(144, 132), 144);
  EXPECT_EQ(tiles_to_stream(100, 132), 100);
  EXPECT_EQ(tiles_to_stream(400, 132), 136);
}

Plan<GemmProblem> plan_of(GemmProblem const& problem, std::string const& policy = "",
                          std::string const& kernel = "", std::size_t maximum = ~std::size_t{0}) {
  PlanOptions options;
  options.policy = policy;
  options.kernel = kernel;
  options.max_workspace = maximum;
  return make_plan(problem, gpu_device("h200"), options);
}
std::string complaint(GemmProblem const& problem, std::string const& policy, std::string const& kernel) {
  try {
    (void)plan_of(problem, policy, kernel);
  } catch (Error const& error) {
    return error.what();
  }
  return "accepted";
}
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

GemmProblem bf16_product(Index m, Index n, Index k) {
  return product(DataType::bf16, DataType::bf16, m, n, k, "tn");
}

TEST(StreamK, PlansAreDividedAsAsked) {
  auto const plan = plan_of(bf16_product(1536, 1536, 1536), "medium,partition=stream_k", "warp_specialized");
  EXPECT_EQ(plan.recipe.policy.partition, Partition::stream_k);
  EXPECT_EQ(plan.recipe.stream_blocks, 132);
  EXPECT_EQ(plan.recipe.streamed, 144);
  EXPECT_EQ(plan.recipe.flag_bytes, 1280U);  // 132 flags of 8 bytes
  EXPECT_EQ(plan.recipe.partial_bytes, 132U * 128 * 128 * 4);
  EXPECT_EQ(plan.workspace_bytes, plan.recipe.flag_bytes + plan.recipe.partial_bytes);
  EXPECT_HAS(to_string(plan.recipe), "stream-K: the steps of the first 144 tiles in 132 equal ranges");

  std::vector<std::byte> workspace(16 << 20);
  auto const clusters =
      plan_of(bf16_product(4096, 4096, 4096), "large,partition=stream_k", "warp_specialized");
  EXPECT_EQ(clusters.recipe.stream_blocks % 2, 0);
  EXPECT_EQ(clusters.recipe.streamed, 1024 % 132 + 132);
  EXPECT_EQ(plan::schedule_of(clusters.recipe, workspace.data()).streamed, (1024 % 132 + 132) / 2)
      << "walks count those of clusters";
  auto const simt = plan_of(product(DataType::f32, DataType::f32, 1000, 1000, 1000, "nn"),
                            "large,multiply=fma,partition=stream_k", "multistage");
  EXPECT_EQ(simt.recipe.stream_blocks, 264);
  EXPECT_EQ(simt.recipe.streamed, 64);
  EXPECT_EQ(plan_of(bf16_product(256, 256, 65536), "deep,partition=tiles").recipe.splits, 1);
  EXPECT_GT(plan_of(bf16_product(1536, 1536, 1536), "medium,partition=split_k").recipe.splits, 1);
}

TEST(StreamK, RefusalsGiveTheReason) {
  EXPECT_HAS(
      complaint(bf16_product(64, 64, 8192), "deep_pair,partition=stream_k", "warp_specialized"),
      "partition = stream_k with cluster_k = 2: blocks that share a tile along k support only tiles and "
      "split_k");
  EXPECT_HAS(complaint(bf16_product(64, 64, 64), "deep,partition=split_k", "warp_specialized"),
             "partition=split_k: there are fewer than 2 steps of k");
  EXPECT_HAS(complaint(bf16_product(64, 64, 64), "partition=streams", "warp_specialized"),
             "--policy: unknown partition 'streams' (did you mean stream_k?); valid values: tiles, split_k, "
             "stream_k, split_k_parallel");
  GemmProblem many = bf16_product(65536, 65536, 1 << 20);
  EXPECT_HAS(complaint(many, "small,partition=stream_k", "warp_specialized"), "at most 2147483647 steps");
}

TEST(StreamK, LittleWorkspaceMeansWholeTiles) {
  auto const plan = plan_of(bf16_product(1536, 1536, 1536), "", "warp_specialized", 0);
  EXPECT_EQ(plan.recipe.policy.partition, Partition::tiles);
  EXPECT_EQ(plan.workspace_bytes, 0U);
}

TEST(StreamK, IsChosenWhereTheLastWaveIsNearlyEmptyAlone) {
  auto const seconds = [](GemmProblem const& problem, std::string const& partition) {
    return plan_of(problem, "medium,partition=" + partition, "warp_specialized").recipe.predicted_seconds;
  };
  GemmProblem const edge = bf16_product(1536, 1536, 1536);  // 144 tiles on 132 multiprocessors
  EXPECT_LT(seconds(edge, "stream_k"), 0.85 * seconds(edge, "tiles"));
  GemmProblem const full = bf16_product(1408, 1536, 1536);  // 132 tiles
  EXPECT_GE(seconds(full, "stream_k"), seconds(full, "tiles"));
  // A short product is not worth splitting.
  GemmProblem const shallow = bf16_product(1536, 1536, 128);
  EXPECT_GT(seconds(shallow, "stream_k"), seconds(shallow, "tiles"));
}

TEST(StreamK, ALineOfATuningFileTellsIt) {
  GemmProblem const problem = bf16_product(1536, 1536, 1536);
  TuningLine line;
  line.problems = plan::gemm_class(problem, "");
  line.gpu = tuning_name(gpu_device("h200").gpu);
  line.kernel = "warp_specialized";
  line.policy = plan::text_of(plan_of(problem, "medium,partition=stream_k").recipe.policy);
  EXPECT_HAS(line.policy, ",partition=stream_k");
  EXPECT_EQ(plan::policy_of(line).partition, Partition::stream_k);
  auto const candidate = plan::tuning_candidate_of(problem, gpu_device("h200"), {}, line);
  ASSERT_EQ(candidate.size(), 1U);
  EXPECT_HAS(candidate[0].recipe, "stream-K");
  line.splits = 2;
  EXPECT_THROW((void)plan::policy_of(line), Error);
  // Lines written before policies had a partition.
  line.policy.resize(line.policy.find(",partition"));
  EXPECT_EQ(plan::policy_of(line).partition, Partition::split_k);
  line.splits = 1;
  EXPECT_EQ(plan::policy_of(line).partition, Partition::tiles);
}

TEST(StreamK, TuneTriesIt) {
  auto const list = plan::tuning_candidates(bf16_product(1536, 1536, 1536), gpu_device("h200"), {});
  EXPECT_TRUE(std::any_of(list.begin(), list.end(), [](TuningCandidate const& one) {
    return one.line.policy.ends_with("partition=stream_k");
  }));
}

}  // namespace
}  // namespace cosmati
