// The kernel with TMA and wgmma: types, layouts, full and partial tiles, cooperative and ping-pong
// warpgroups, clusters, split-K, batches, and every way to store D.
#include "cosmati/core/cluster.h"
#include "tests/emulated/warp_specialized_case.h"

namespace cosmati::emulated {
namespace {

constexpr Along outer = Along::mn, depth = Along::k;
constexpr EpilogueSchedule staged = EpilogueSchedule::staged;

// One block computes all tiles one after the other; full tiles, and tiles cut off along every dimension.
template <class ElementA, Along a, class ElementB, Along b, class Sum, class Result>
void expect_layout() {
  using Kernel = Warpgroups<ElementA, a, ElementB, b, Sum>;
  constexpr int step = 128 / static_cast<int>(sizeof(ElementA));
  Kernel::template expect_product<WarpgroupTiles{}, TensorDestination<Result>>({100, 40, 2 * step + 5});
  Kernel::template expect_product<WarpgroupTiles{.whole = true, .epilogue = staged},
                                  StridedDestination<Result, 4>>({64, 64, 3 * step});
}
template <class Element, class Sum, class Result>
void expect_all_layouts() {
  expect_layout<Element, outer, Element, outer, Sum, Result>();
  expect_layout<Element, outer, Element, depth, Sum, Result>();
  expect_layout<Element, depth, Element, outer, Sum, Result>();
  expect_layout<Element, depth, Element, depth, Sum, Result>();
}

TEST(WarpSpecializedKernel, F16) { expect_all_layouts<f16, float, f16>(); }
TEST(WarpSpecializedKernel, F16WithSumsInF16) { expect_all_layouts<f16, f16, f16>(); }
TEST(WarpSpecializedKernel, Bf16) { expect_all_layouts<bf16, float, float>(); }
TEST(WarpSpecializedKernel, Tf32) { expect_layout<tf32, depth, tf32, depth, float, float>(); }
TEST(WarpSpecializedKernel, Bytes) {
  expect_layout<s8, depth, s8, depth, s32, s32>();
  expect_layout<u8, depth, s8, depth, s32, f16>();
}
TEST(WarpSpecializedKernel, Fp8) {
  expect_layout<e4m3, depth, e4m3, depth, float, bf16>();
  expect_layout<e4m3, depth, e5m2, depth, float, float>();
}

using Bf16 = Warpgroups<bf16, depth, bf16, outer, float>;
using Engine = TensorDestination<bf16>;

TEST(WarpSpecializedKernel, WarpgroupsShareATile) {
  // Two and three warpgroups along m; two along n with 128 rows each.
  Bf16::expect_product<WarpgroupTiles{.block_m = 128}, Engine>({130, 40, 200});
  Bf16::expect_product<WarpgroupTiles{.block_m = 192, .epilogue = staged}, StridedDestination<bf16, 8>>(
      {200, 24, 70});
  Bf16::expect_product<WarpgroupTiles{.block_m = 128, .block_n = 128, .warp_m = 32, .warp_n = 64}, Engine>(
      {140, 136, 100});
}

// Columns in steps of 8 with K-major B, otherwise of 16. Boxes of D are swizzled or have an odd number of
// 16-byte units per row.
TEST(WarpSpecializedKernel, AnyNumberOfColumns) {
  using Deep = Warpgroups<bf16, depth, bf16, depth, float>;
  constexpr WarpgroupTiles of24{.block_n = 24, .warp_n = 24}, of40{.block_n = 40, .warp_n = 40},
      of72{.block_n = 72, .warp_n = 72}, of80{.block_m = 128, .block_n = 80, .warp_n = 80},
      of112{.block_n = 112, .warp_n = 112}, of136{.block_n = 136, .warp_n = 136};
  Deep::expect_product<of24, Engine>({70, 40, 140});
  Deep::expect_product<of40, Engine>({70, 88, 100});
  Deep::expect_product<of72, Engine>({70, 152, 100});
  Deep::expect_product<of80, TensorDestination<float>>({130, 168, 100});
  Deep::expect_product<of136, Engine>({64, 280, 70});
  Deep::expect_product<of72, TensorDestination<bf16, Along::mn>>({72, 80, 100}, {.d = outer});
  Deep::expect_product<WarpgroupTiles{.block_n = 72, .warp_n = 72, .epilogue = staged},
                       StridedDestination<bf16, 4>>({70, 100, 100});
  Deep::expect_product<WarpgroupTiles{.block_n = 72, .warp_n = 72, .epilogue = staged},
                       StridedDestination<bf16, 8>>({70, 104, 100});
  Deep::expect_product<WarpgroupTiles{.block_n = 72, .warp_n = 72, .epilogue = staged},
                       StridedDestination<bf16, 1>>({70, 101, 100});
  Bf16::expect_product<of80, Engine>({100, 96, 100});
  Bf16::expect_product<WarpgroupTiles{.block_m = 256, .block_n = 160, .warp_m = 32, .warp_n = 160}, Engine>(
      {300, 200, 100});
  Bf16::expect_product<of112, Engine>({60, 120, 100});
  using Bytes = Warpgroups<s8, depth, s8, depth, s32>;
  Bytes::expect_product<of80, TensorDestination<s8>>({70, 96, 200});
  using Halves = Warpgroups<f16, depth, f16, depth, f16>;
  Halves::expect_product<of112, TensorDestination<f16>>({70, 120, 100});
}

// The last box of an N-major B ends beyond its tile, or lies outside of B.
TEST(WarpSpecializedKernel, BoxesEndBeyondTheColumnsOfATile) {
  constexpr WarpgroupTiles of48{.block_n = 48, .warp_n = 48}, of208{.block_n = 208, .warp_n = 208};
  Bf16::expect_product<of48, Engine>({70, 104, 140});
  Bf16::expect_product<of208, Engine>({64, 400, 70});
  Bf16::expect_product<WarpgroupTiles{.block_n = 80, .warp_n = 80, .step_bytes = 64}, Engine>({70, 96, 24});
  // Two blocks load two boxes each, or half of the rows of three; the second one's tile is beyond D.
  Bf16::expect_product<WarpgroupTiles{.block_n = 208, .warp_n = 208, .cluster_m = 2}, Engine>({200, 216, 70});
  Bf16::expect_product<WarpgroupTiles{.block_n = 144, .warp_n = 144, .cluster_m = 2}, Engine>({60, 304, 70});
  using Addressed = Warpgroups<bf16, depth, bf16, outer, float, AddressedTensors>;
  Addressed::expect_product<of48, Engine>({70, 104, 128}, {.batch = 2});
}

// A matrix with fewer rows than a tile is loaded in boxes of its rows only; the emulator reports operands
// that nothing has written.
TEST(WarpSpecializedKernel, FewRowsAreLoadedAlone) {
  using Deep = Warpgroups<bf16, depth, bf16, depth, float>;
  constexpr WarpgroupTiles of72{.block_n = 72, .warp_n = 72};
  Deep::expect_product<of72, Engine>({1, 152, 300});
  Deep::expect_product<of72, Engine>({5, 152, 300});
  Deep::expect_product<WarpgroupTiles{.block_m = 128, .stages = 3}, Engine>({17, 24, 300});
  Deep::expect_product<WarpgroupTiles{.cluster_n = 2}, Engine>({5, 96, 300});
  Deep::expect_product<WarpgroupTiles{.partition = Partition::split_k}, Engine>({9, 8, 330}, {.splits = 3});
  Deep::expect_product<of72, Engine>({5, 40, 60}, {.batch = 3});
  // Steps of 64 and 32 bytes: the rows that exist do not fill a line of 128.
  Deep::expect_product<WarpgroupTiles{.step_bytes = 64}, Engine>({3, 24, 24});
  Deep::expect_product<WarpgroupTiles{.step_bytes = 32}, Engine>({5, 40, 16});
}

TEST(WarpSpecializedKernel, WarpgroupsTakeTurns) {
  // An odd and an even number of tiles, and a single one; more steps than stages, and fewer.
  constexpr WarpgroupTiles in_turn{.ping_pong = true};
  Bf16::expect_product<in_turn, Engine>({190, 24, 330});
  Bf16::expect_product<in_turn, Engine>({100, 56, 60});
  Bf16::expect_product<in_turn, Engine>({20, 24, 200});
  Bf16::expect_product<WarpgroupTiles{.warp_m = 16, .stages = 3, .ping_pong = true, .epilogue = staged},
                       StridedDestination<bf16, 4>>({130, 60, 140}, {.clusters = 2});
  Bf16::expect_product<
      WarpgroupTiles{.block_m = 128, .block_n = 64, .warp_m = 32, .warp_n = 64, .ping_pong = true}, Engine>(
      {200, 104, 130});
}

TEST(WarpSpecializedKernel, ClustersShareOperands) {
  // Clusters of 2x1 and 1x2 blocks, which load slices of rows or complete boxes; the last cluster reaches
  // beyond D.
  constexpr WarpgroupTiles along_m{.cluster_m = 2}, along_n{.cluster_n = 2};
  Bf16::expect_product<along_m, Engine>({160, 24, 200});
  Bf16::expect_product<along_n, Engine>({60, 80, 200}, {.clusters = 2});
  using BothOuter = Warpgroups<f16, outer, f16, outer, float>;
  BothOuter::expect_product<WarpgroupTiles{.block_m = 128, .cluster_n = 2}, TensorDestination<f16>>(
      {130, 40, 70});
  using Deep = Warpgroups<s8, depth, s8, depth, s32>;
  Deep::expect_product<WarpgroupTiles{.cluster_m = 2, .cluster_n = 2}, StridedDestination<s32, 4>>(
      {130, 70, 200});
  Bf16::expect_product<WarpgroupTiles{.cluster_m = 2, .ping_pong = true}, Engine>({200, 56, 200});
  // The largest cluster possible without opting in; each block loads slices of 8 rows.
  static_assert(max_cluster_blocks == 8);
  Bf16::expect_product<WarpgroupTiles{.cluster_m = 4, .cluster_n = 2}, Engine>({300, 80, 200});
  Bf16::expect_product<WarpgroupTiles{.cluster_n = 8}, Engine>({60, 200, 140}, {.clusters = 2});
}

// Steps of 32 or 64 bytes: exactly k, more than k, and several of them.
template <class Element, Along a, Along b>
void expect_shallow_steps() {
  using Kernel = Warpgroups<Element, a, Element, b, float>;
  using Stored = TensorDestination<Element>;
  Kernel::template expect_product<WarpgroupTiles{.step_bytes = 32}, Stored>({100, 40, 16});
  Kernel::template expect_product<WarpgroupTiles{.step_bytes = 64}, Stored>({100, 24, 24});
  Kernel::template expect_product<WarpgroupTiles{.step_bytes = 64}, Stored>({70, 24, 104});
}
TEST(WarpSpecializedKernel, ShallowSteps) {
  expect_shallow_steps<f16, depth, depth>();
  expect_shallow_steps<f16, outer, depth>();
  expect_shallow_steps<bf16, depth, outer>();
  expect_shallow_steps<bf16, outer, outer>();
}

// With a single step of k, each stage loads B only once for consecutive tiles that share it: more tiles than
// stages in a column, tiles whose columns alternate or change once, batches, clusters that share operands.
TEST(WarpSpecializedKernel, BStaysInSharedMemory) {
  constexpr WarpgroupTiles three{.stages = 3}, in_turn{.step_bytes = 64, .ping_pong = true},
      pair{.cluster_m = 2, .step_bytes = 32}, row{.cluster_n = 2};
  Bf16::expect_product<three, Engine>({600, 24, 40});
  Bf16::expect_product<three, Engine>({400, 56, 40});
  Bf16::expect_product<three, Engine>({400, 88, 40}, {.clusters = 2});
  Bf16::expect_product<WarpgroupTiles{}, Engine>({200, 24, 60}, {.batch = 3});
  Bf16::expect_product<in_turn, Engine>({500, 24, 24});
  Bf16::expect_product<pair, Engine>({700, 24, 16});
  Bf16::expect_product<row, Engine>({400, 104, 56});
  // Parts of k with one step each, so that they have different tiles of B.
  Bf16::expect_product<WarpgroupTiles{.partition = Partition::split_k}, Engine>({600, 24, 100},
                                                                                {.splits = 2});
  Bf16::expect_product<WarpgroupTiles{.partition = Partition::stream_k}, Engine>({600, 24, 100},
                                                                                 {.clusters = 3});
}

TEST(WarpSpecializedKernel, PartsOfK) {
  constexpr WarpgroupTiles parts{.partition = Partition::split_k},
      in_turn{.ping_pong = true, .partition = Partition::split_k};
  Bf16::expect_product<parts, Engine>({100, 40, 330}, {.splits = 3, .clusters = 2});
  Bf16::expect_product<parts, Engine>({50, 24, 100}, {.splits = 5});  // more splits than steps
  Bf16::expect_product<in_turn, Engine>({100, 40, 330}, {.batch = 2, .splits = 2});
  Bf16::expect_product<WarpgroupTiles{.cluster_m = 2, .partition = Partition::split_k, .epilogue = staged},
                       StridedDestination<bf16, 8>>({70, 30, 200}, {.splits = 2, .clusters = 2});
}

TEST(WarpSpecializedKernel, PartsOfKInACluster) {
  // An odd number of steps, fewer steps than blocks; split-K within clusters.
  constexpr WarpgroupTiles two{.cluster_k = 2};
  // Slices of 8 columns, fewer than a row of a box of B.
  Bf16::expect_product<WarpgroupTiles{.cluster_k = 4}, TensorDestination<bf16, Along::mn>>({72, 40, 330},
                                                                                           {.d = outer});
  Bf16::expect_product<two, Engine>({70, 24, 330});
  Bf16::expect_product<WarpgroupTiles{.block_n = 64, .warp_n = 64, .cluster_k = 4, .epilogue = staged},
                       StridedDestination<bf16, 2>>({40, 60, 190});
  Bf16::expect_product<WarpgroupTiles{.cluster_k = 2, .partition = Partition::split_k}, Engine>(
      {60, 24, 300}, {.splits = 2});
}

// Two sums in f16 share a register, also where partial sums are exchanged.
TEST(WarpSpecializedKernel, SumsInF16AreShared) {
  using Halves = Warpgroups<f16, depth, f16, outer, f16>;
  using ToHalves = TensorDestination<f16>;
  Halves::expect_product<WarpgroupTiles{.block_m = 128, .block_n = 128, .warp_m = 32, .warp_n = 64},
                         ToHalves>({140, 136, 100});
  Halves::expect_product<WarpgroupTiles{.ping_pong = true, .epilogue = staged}, StridedDestination<f16, 2>>(
      {130, 44, 140});
  Halves::expect_product<WarpgroupTiles{.partition = Partition::split_k}, ToHalves>(
      {100, 40, 330}, {.splits = 3, .clusters = 2});
  Halves::expect_product<WarpgroupTiles{.partition = Partition::stream_k}, ToHalves>({100, 72, 330},
                                                                                     {.clusters = 3});
  Halves::expect_product<WarpgroupTiles{.cluster_k = 2}, ToHalves>({70, 24, 330});
  Halves::expect_product<WarpgroupTiles{.cluster_k = 4, .epilogue = staged}, StridedDestination<f16, 2>>(
      {40, 30, 190});
  // A slice of two registers, stored as a part of k.
  Halves::expect_product<WarpgroupTiles{.cluster_k = 4, .partition = Partition::split_k, .epilogue = staged},
                         StridedDestination<f16, 2>>({40, 30, 600}, {.splits = 2});
}

TEST(WarpSpecializedKernel, Batches) {
  Bf16::expect_product<WarpgroupTiles{}, Engine>({70, 24, 70}, {.batch = 3, .clusters = 2});
  Bf16::expect_product<WarpgroupTiles{.ping_pong = true}, StridedDestination<bf16, 2>>({20, 30, 200},
                                                                                       {.batch = 3});
}

// Boxes that lie outside of the matrices completely: of a tile's second half, of a block's slice of a tile,
// and of a cluster's tiles beyond D.
TEST(WarpSpecializedKernel, BatchesByPointers) {
  using Rows = Warpgroups<bf16, depth, bf16, depth, float, AddressedTensors>;
  Rows::expect_product<WarpgroupTiles{}, Engine>({70, 24, 70}, {.batch = 3, .clusters = 2});
  Rows::expect_product<WarpgroupTiles{.cluster_m = 2}, Engine>({60, 8, 70}, {.batch = 2});
  Rows::expect_product<WarpgroupTiles{.cluster_n = 2}, Engine>({24, 40, 70}, {.batch = 2});
  Rows::expect_product<WarpgroupTiles{.cluster_m = 2, .cluster_n = 2}, Engine>({70, 40, 70}, {.batch = 2});
  using Columns = Warpgroups<bf16, outer, bf16, outer, float, AddressedTensors>;
  Columns::expect_product<
      WarpgroupTiles{.block_m = 128, .block_n = 128, .warp_n = 128, .cluster_m = 2, .cluster_n = 2}, Engine>(
      {136, 200, 70}, {.batch = 2});
  Columns::expect_product<WarpgroupTiles{.block_m = 128, .block_n = 128, .warp_n = 128}, Engine>(
      {168, 40, 70}, {.batch = 2});
}

// Adds 100 m + n from memory with no more elements than D, so that reads beyond its edge are detected.
struct PlusElement {
  float const* values;
  int rows, columns;
  float operator()(float sum, Index m, Index n) const {
    EXPECT_TRUE(m < rows && n < columns) << m << ", " << n;
    return sum + values[m * columns + n];
  }
};

template <WarpgroupTiles tiles, class Destination>
void expect_values(int n, WarpgroupSetting const& setting = {}) {
  constexpr int m = 70;
  std::vector<float> values(static_cast<std::size_t>(m * n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 113);
  Bf16::expect_values<tiles, Destination>(PlusElement{values.data(), m, n}, {m, n, 100}, setting);
}

TEST(WarpSpecializedKernel, EpiloguesByAllWays) {
  constexpr WarpgroupTiles direct{}, in_passes{.epilogue = staged};
  expect_values<direct, Engine>(40);  // rows of D are multiples of 16 bytes
  expect_values<direct, TensorDestination<float>>(44);
  expect_values<direct, StridedDestination<float, 2>>(45);
  expect_values<direct, StridedDestination<f16, 1>>(45, {.d = outer});
  expect_values<in_passes, StridedDestination<float, 4>>(45);
  expect_values<in_passes, StridedDestination<bf16, 1>>(45, {.d = outer});
}

TEST(WarpSpecializedKernel, NothingToAddAndSingleElements) {
  Bf16::expect_product<WarpgroupTiles{}, Engine>({70, 24, 0});
  Bf16::expect_product<WarpgroupTiles{}, Engine>({1, 8, 1});
  Bf16::expect_product<WarpgroupTiles{.ping_pong = true, .partition = Partition::split_k}, Engine>(
      {70, 40, 0}, {.splits = 2});
}

}  // namespace
}  // namespace cosmati::emulated
