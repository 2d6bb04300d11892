// M-major 32-bit operands, which pass through registers to wgmma, and M-major results.
#include "tests/emulated/warp_specialized_case.h"

namespace cosmati::emulated {
namespace {

constexpr Along outer = Along::mn, depth = Along::k;
using Tf32 = Warpgroups<tf32, outer, tf32, depth, float>;
using AlongN = TensorDestination<float>;
using AlongM = TensorDestination<float, outer>;

TEST(ThroughRegisters, RaggedAndWhole) {
  Tf32::expect_product<WarpgroupTiles{.stages = 3}, AlongN>({100, 40, 2 * 32 + 5});
  Tf32::expect_product<WarpgroupTiles{.stages = 3}, AlongN>({20, 12, 1});
  Tf32::expect_product<WarpgroupTiles{.whole = true, .epilogue = EpilogueSchedule::staged},
                       StridedDestination<float, 4>>({64, 64, 3 * 32});
}

TEST(ThroughRegisters, WarpgroupsThatShareOrTakeTurns) {
  // 128 rows per warpgroup; the rows of the second warpgroup; a cluster's slices of A.
  Tf32::expect_product<WarpgroupTiles{.block_m = 128, .warp_m = 32, .ping_pong = true}, AlongM>(
      {200, 40, 130}, {.d = outer});
  Tf32::expect_product<WarpgroupTiles{.block_m = 128, .cluster_n = 2, .partition = Partition::split_k},
                       AlongM>({132, 40, 100}, {.splits = 2, .d = outer});
}

TEST(AlongM, ByTheEngineAndByThreads) {
  using Bf16 = Warpgroups<bf16, depth, bf16, depth, float>;
  constexpr WarpgroupTiles wide{.block_n = 64, .warp_n = 64};
  Bf16::expect_product<wide, TensorDestination<bf16, outer>>({104, 70, 100}, {.batch = 2, .d = outer});
  Bf16::expect_product<WarpgroupTiles{.cluster_k = 2}, AlongM>({72, 45, 200}, {.d = outer});
  Bf16::expect_values<wide, AlongM>(
      [](float sum, Index m, Index n) { return sum + static_cast<float>(3 * m - n); }, {68, 41, 70},
      {.d = outer});
  Bf16::expect_values<WarpgroupTiles{.epilogue = EpilogueSchedule::staged},
                      StridedDestination<float, 1, outer>>(
      [](float sum, Index m, Index n) { return sum + static_cast<float>(3 * m - n); }, {67, 41, 70},
      {.d = outer});
}

}  // namespace
}  // namespace cosmati::emulated
