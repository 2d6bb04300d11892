// Tiles by wgmma whose columns are chosen for one product, on a GPU that is not installed.
#include "src/plan/gemm/tiles/fitted_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "src/plan/gemm/model.h"
#include "src/plan/gemm/warp_specialized.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

// That of a product TN on an H200, without measured choices.
GemmRecipe predicted_recipe(DataType type, Index m, Index n, Index k, std::string const& policy = {}) {
  PlanOptions options;
  options.built_in_tuning = false;
  options.policy = policy;
  return make_plan(product(type, type, m, n, k, "tn"), gpu_device("h200"), options).recipe;
}

// As measured on an H200 (docs/decisions/0045), where all blocks run at the same time.
TEST(FittedTiles, BlocksAtAnEdgeDelayARound) {
  auto const microseconds = [](Index m, Index n, Index k, std::string const& policy) {
    return 1e6 * predicted_recipe(DataType::bf16, m, n, k, policy).predicted_seconds;
  };
  // Two clusters of two tiles of 128 rows cover 384 rows and a fourth tile, whose steps are all zeros.
  EXPECT_GT(microseconds(384, 384, 1536, "128x64_2x1"), 1.2 * microseconds(384, 384, 1536, "128x64"));
  // The fourth tile of 64 rows has 5 of 197 rows; in a cluster, its block loads fewer columns: 15.8 and 10.7.
  EXPECT_GT(microseconds(197, 2880, 2880, "64x96"), 1.15 * microseconds(197, 2880, 2880, "64x96_4x1"));
  // Each weight is loaded by two clusters instead of four: 13.5 and 11.5 us.
  EXPECT_GT(microseconds(128, 5120, 3072, "64x80"), 1.02 * microseconds(128, 5120, 3072, "64x80_2x1"));
}

TEST(FittedTiles, ColumnsOfATileAreChosenForTheProduct) {
  auto const name_of_tile = [](Index m, Index n, Index k) {
    return predicted_recipe(DataType::bf16, m, n, k).policy_name;
  };
  // 128 tiles for 132 multiprocessors.
  EXPECT_EQ(name_of_tile(16, 9216, 3072), "64x72");
  EXPECT_EQ(name_of_tile(48, 6144, 4096), "64x48");
  EXPECT_EQ(name_of_tile(128, 6144, 4096), "64x96_2x1");
  // Tiles of the exchanged product, whose prediction is good; and otherwise, if it is 5 % faster than other
  // tiles and 3 % faster than the fitted one of the first path.
  EXPECT_EQ(name_of_tile(512, 3136, 2048), "128x96_2x1");
  EXPECT_EQ(name_of_tile(96, 11008, 4096), "128x96");
  // D has few columns, which many rounds of tiles cover without a rest; not in few steps.
  EXPECT_EQ(name_of_tile(272, 36992, 384), "192x144_1x2");
  EXPECT_EQ(name_of_tile(272, 36992, 128), "192x160");
  // With B along n, columns come in sixteens, but for few rows in full boxes.
  auto const columns_of = [](Index m, Index n) {
    auto const form = plan::canonical(product(DataType::bf16, DataType::bf16, m, n, 512, "nt"));
    EXPECT_EQ(plan::access_of(form.b).along, Along::mn);
    std::vector<int> columns;
    for (plan::NamedPolicy const& tile : plan::fitted_policies(form, gpu_device("h200").gpu))
      columns.push_back(tile.policy.block_n);
    EXPECT_FALSE(columns.empty());
    return columns;
  };
  for (int const columns : columns_of(512, 640)) EXPECT_EQ(columns % 16, 0);
  for (int const columns : columns_of(6144, 48)) EXPECT_EQ(columns % 32, 0);
  for (int const columns : columns_of(40, 640)) EXPECT_EQ(columns % 16, 0);
  auto empty = plan::canonical(product(DataType::bf16, DataType::bf16, 512, 640, 512, "tn"));
  empty.batch = 0;
  EXPECT_TRUE(plan::fitted_policies(empty, gpu_device("h200").gpu).empty());
}

TEST(FittedTiles, AreLegalAndFit) {
  Gpu const gpu = gpu_device("h200").gpu;
  auto const expect_fit = [&](plan::CanonicalGemm const& form) {
    for (EpilogueSchedule schedule : {EpilogueSchedule::direct, EpilogueSchedule::staged})
      for (plan::NamedPolicy const& tile : plan::fitted_policies(form, gpu, schedule)) {
        EXPECT_EQ(plan::policy_violation(tile.policy, form.a.type, form.b.type, form.sum), "") << tile.name;
        bool const few_columns = form.n <= Index{3} * tile.policy.block_n;
        EXPECT_TRUE(few_columns || plan::tiles_of(tile.policy, form) <= 2 * gpu.multiprocessors) << tile.name;
        GemmPolicy policy = tile.policy;
        policy.epilogue = plan::stores_by_tma(policy, form) ? schedule : EpilogueSchedule::staged;
        EXPECT_LE(plan::warp_specialized_shared_bytes(policy, form), gpu.shared_bytes_per_block) << tile.name;
      }
  };
  for (DataType type : {DataType::bf16, DataType::tf32, DataType::e4m3, DataType::s8})
    for (DataType result : {DataType::f64, DataType::f32, DataType::bf16, DataType::s8})
      for (Index m = 1; m < 5000; m += m / 2 + 1)
        for (Index n = 8; n < 40'000; n += n / 2)
          for (char const* const layouts : {"tn", "nt"})
            if (layouts[1] == 'n' || size_of(type) == 2)
              expect_fit(plan::canonical(product(type, result, m, n, 512, layouts)));
}

// Two or four blocks share tiles of B or of A, if there is more than one of them; in other types only two
// rows of tiles share those of B, and always.
TEST(FittedTiles, InClusters) {
  // m and n as in the kernel, which exchanges them.
  auto const clusters = [](DataType type, Index m, Index n) {
    std::set<std::pair<int, int>> found;
    for (plan::NamedPolicy const& tile : plan::fitted_policies(
             plan::canonical(product(type, DataType::f32, n, m, 512, "tn")), gpu_device("h200").gpu))
      if (tile.policy.block_m == 128) found.emplace(tile.policy.cluster_m, tile.policy.cluster_n);
    return found;
  };
  using Set = std::set<std::pair<int, int>>;
  EXPECT_EQ(clusters(DataType::bf16, 512, 4096), (Set{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}}));
  EXPECT_EQ(clusters(DataType::bf16, 256, 4096), (Set{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 4}}));
  EXPECT_EQ(clusters(DataType::bf16, 100, 9216), (Set{{1, 1}}));
  EXPECT_EQ(clusters(DataType::bf16, 4096, 16), (Set{{1, 1}}));
  EXPECT_EQ(clusters(DataType::tf32, 512, 4096), (Set{{1, 1}}));
  EXPECT_EQ(clusters(DataType::tf32, 256, 4096), (Set{{2, 1}}));
}

// A tile of 256 rows holds up to 192 sums per thread, unless those of a step are kept in addition; with an
// epilogue that needs shared memory it has fewer stages.
TEST(FittedTiles, LargeTiles) {
  EXPECT_EQ(predicted_recipe(DataType::bf16, 512, 12288, 11008).policy_name, "256x192_2x1");
  EXPECT_EQ(predicted_recipe(DataType::f16, 1280, 3584, 4864).policy_name, "256x144");
  auto const stages = [](char const* policy) {
    return predicted_recipe(DataType::bf16, 8192, 1280, 8192, policy).policy.stages;
  };
  EXPECT_EQ(stages("256x160"), 4);
  EXPECT_EQ(stages("256x160,epilogue=staged"), 3);
  GemmPolicy const large = plan::tile_named("256x160", 1, 2)->policy;
  EXPECT_EQ(plan::policy_violation(large, DataType::s8, DataType::s8, DataType::s32), "");
  EXPECT_EQ(plan::policy_violation(large, DataType::e4m3, DataType::e4m3, DataType::f32),
            "160 accumulators per thread; registers hold at most 128");
}

// Sums leave fewer registers for an epilogue that is long or reads or stores matrices.
TEST(FittedTiles, LargeTilesLeaveRegistersForTheEpilogue) {
  auto const widest = [](char const* expression, EpilogueSchedule schedule) {
    GemmProblem problem = product(DataType::bf16, DataType::bf16, 8192, 1536, 4096, "tn");
    problem.epilogue.expression = epilogue::parse(expression);
    TensorDescription const matrix = problem.d;
    if (problem.epilogue.expression.uses_source()) problem.c = matrix;
    problem.epilogue.operands.assign(problem.epilogue.expression.operands().size(), matrix);
    int columns = 0;
    for (Index n = 256; n <= 1536; n += 128) {
      auto form = plan::canonical(problem);
      form.m = n;
      for (plan::NamedPolicy const& tile : plan::fitted_policies(form, gpu_device("h200").gpu, schedule))
        if (tile.policy.block_m == 256) columns = std::max(columns, tile.policy.block_n);
    }
    return columns;
  };
  EXPECT_EQ(widest("acc", EpilogueSchedule::direct), 192);
  EXPECT_LE(widest("gelu(acc)", EpilogueSchedule::staged), 176);
  EXPECT_LE(widest("acc + c", EpilogueSchedule::direct), 160);
  EXPECT_LE(widest("gelu(acc) + c + r[m,n]", EpilogueSchedule::staged), 128);
}

// The steps of a fitted tile's two rounds may be streamed; a partition that is asked for is always used.
TEST(FittedTiles, AreStreamed) {
  GemmRecipe const streamed = predicted_recipe(DataType::bf16, 28672, 197, 4096);
  EXPECT_EQ(streamed.policy_name, "128x208");
  EXPECT_EQ(streamed.policy.partition, Partition::stream_k);
  EXPECT_EQ(predicted_recipe(DataType::f16, 1152, 512, 5120).policy_name, "64x96_4x1");
  auto const partition = [](std::string const& policy) {
    return predicted_recipe(DataType::bf16, 1280, 3584, 4864, policy).policy.partition;
  };
  EXPECT_EQ(partition(""), Partition::tiles);
  for (Partition const asked : {Partition::stream_k, Partition::split_k, Partition::split_k_parallel})
    EXPECT_EQ(partition("partition=" + std::string(name_of(asked))), asked);
}

}  // namespace
}  // namespace cosmati
