// Requirements on a policy of the warp_specialized main loop, as static_assert messages; the type names in
// the messages contain the numbers.
#pragma once
#include "cosmati/core/cluster.h"
#include "cosmati/gemm/requirements.h"
#include "cosmati/gemm/tensor_source.h"

namespace cosmati {

namespace required {

template <MainLoop main_loop, Multiply multiply>
struct WarpSpecialized {
  static_assert(main_loop == MainLoop::warp_specialized && multiply == Multiply::wgmma,
                "this kernel requires main_loop warp_specialized and multiply wgmma");
};
template <int block_k, int element_bytes>
struct StepOfASwizzle {
  static_assert(
      block_k * element_bytes == 128 || block_k * element_bytes == 64 || block_k * element_bytes == 32,
      "warp_specialized: a step must be 128, 64 or 32 bytes deep, the span of one of TMA's swizzles");
};
template <int warp_m, int warp_n, int thread_m, int thread_n, bool any_eight>
struct WarpTileOfWgmma {
  static_assert(warp_m == 16 || warp_m == 32,
                "multiply wgmma: warp_m must be 16 or 32, a quarter of the rows of a warpgroup");
  static_assert(
      warp_n >= 16 && warp_n <= 256 && warp_n % (any_eight ? 8 : 16) == 0,
      "multiply wgmma: warp_n, the columns of a warpgroup, must be a multiple of 16 from 16 to 256; "
      "with K-major B and f32 sums that are not promoted, of 8");
  static_assert(thread_m * 8 == warp_m && thread_n * 4 == warp_n,
                "multiply wgmma: thread_m is warp_m / 8, thread_n is warp_n / 4");
};
template <int block_m, int block_n, int step_bytes>
struct TileBytesOfAStep {
  static_assert(
      divides(1024, block_m* step_bytes) && divides(1024, block_n* step_bytes),
      "warp_specialized: a step of A and of B must have a multiple of 1024 bytes, since the barrier "
      "of a stage also expects the padding between tiles, which TMA does not write");
};
template <int block_m, int block_n, int warp_m, int warp_n>
struct WarpgroupsOfABlock {
  static_assert(divides(4 * warp_m, block_m) && divides(warp_n, block_n),
                "multiply wgmma: the block tile must be a multiple of the warpgroup tile, 4 * warp_m by "
                "warp_n");
  static_assert(block_m <= 256 && block_n <= 256, "warp_specialized: a TMA box has at most 256 rows");
};
template <int groups, bool ping_pong>
struct Consumers {
  static_assert(ping_pong ? groups == 2 : groups >= 1 && groups <= 3,
                "warp_specialized requires one, two or three consumer warpgroups; ping_pong requires two, "
                "each with its own tile");
};
template <int cluster_m, int cluster_n, int max_blocks>
struct Cluster {
  static_assert(cluster_m >= 1 && cluster_n >= 1 && cluster_m * cluster_n <= max_blocks,
                "a cluster has at most max_blocks blocks, cluster_m * cluster_n");
};
template <int cluster_k, int max_blocks, int sharing, int warps_n, int warp_n, bool ping_pong, bool streams>
struct ClusterAlongK {
  static_assert(is_cluster_k(cluster_k),
                "cluster_k, the blocks of a cluster that share a tile, must be a power of two, at most "
                "max_blocks");
  static_assert(cluster_k == 1 ||
                    (sharing == 1 && warps_n == 1 && !ping_pong && divides(8 * cluster_k, warp_n)),
                "cluster_k > 1 requires cluster_m = cluster_n = 1, warp_n = block_n, a multiple of 8 "
                "columns per block, and no ping_pong");
  static_assert(cluster_k == 1 || !streams,
                "cluster_k > 1 requires partition tiles or split_k, not "
                "stream_k");
};
template <class ElementA, class ElementB, bool a_along_depth, bool b_along_depth, class Sum>
struct OperandsOfWgmma : OperandsOfMma<ElementA, ElementB, Sum> {
  static_assert(sizeof(ElementA) == 2 || (b_along_depth && (a_along_depth || sizeof(ElementA) == 4)),
                "multiply wgmma requires K-major operands unless elements have 16 bits; only A may also be "
                "M-major in tf32");
};
template <bool by_threads, int sharing>
struct OperandsByThreads {
  static_assert(
      !by_threads || sharing == 1,
      "warp_specialized: blocks of a cluster share only operands loaded by TMA; an operand copied by "
      "threads requires cluster_m = cluster_n = 1");
};
template <int stages>
struct StagesOfWarpSpecialized {
  static_assert(stages >= 2, "main loop warp_specialized requires stages >= 2");
};

}  // namespace required

template <GemmPolicy p, class ElementA, class ElementB, bool a_along_depth, bool b_along_depth, class Sum>
struct WarpSpecializedRequirements
    : required::WarpSpecialized<p.main_loop, p.multiply>,
      required::BlockTile<p.block_m, p.block_n, p.block_k>,
      required::StepOfASwizzle<p.block_k, static_cast<int>(sizeof(ElementA))>,
      required::WarpTileOfWgmma<p.warp_m, p.warp_n, p.thread_m, p.thread_n,
                                b_along_depth && is_same<Sum, float> && !p.promotes && sizeof(ElementA) != 1>,
      required::TileBytesOfAStep<p.block_m, p.block_n, p.block_k* static_cast<int>(sizeof(ElementA))>,
      required::WarpgroupsOfABlock<p.block_m, p.block_n, p.warp_m, p.warp_n>,
      required::Consumers<required::quotient(p.consumer_warps(), 4), p.ping_pong>,
      required::Cluster<p.cluster_m, p.cluster_n, max_cluster_blocks>,
      required::ClusterAlongK<p.cluster_k, max_cluster_blocks, p.cluster_m * p.cluster_n,
                              required::quotient(p.block_n, p.warp_n), p.warp_n, p.ping_pong,
                              p.partition == Partition::stream_k>,
      required::Scheduling<p.blocks, p.raster_width>,
      required::StagesOfWarpSpecialized<p.stages>,
      required::OperandsOfWgmma<ElementA, ElementB, a_along_depth, b_along_depth, Sum> {
  static constexpr bool satisfied = true;
};

// A separate base class, so that these messages appear before the errors that follow from them.
template <GemmPolicy policy, class SourceA, class SourceB, class Sum>
struct CheckedWarpgroups {
  using Requirements =
      WarpSpecializedRequirements<policy, typename SourceA::Element, typename SourceB::Element,
                                  SourceA::along == Along::k, SourceB::along == Along::k, Sum>;
  static_assert(Requirements::satisfied);
  using ByThreads = required::OperandsByThreads<is_copied<SourceA> || is_copied<SourceB>,
                                                policy.cluster_m * policy.cluster_n>;
  static_assert(sizeof(ByThreads) > 0);
};

}  // namespace cosmati
