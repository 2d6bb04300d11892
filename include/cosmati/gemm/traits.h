// One trait type a kernel: everything that the parts of a GEMM must agree upon.
#pragma once
#include "cosmati/gemm/policy.h"
#include "cosmati/gemm/requirements.h"
#include "cosmati/gemm/source.h"
#include "cosmati/tile/accumulators.h"
#include "cosmati/tile/fragment.h"
#include "cosmati/tile/operand_loader.h"

namespace cosmati {

// What lies in shared memory for one depth of an operand. The double-buffered loop converts to the
// accumulator's type on the way in, cp.async cannot.
template <GemmPolicy policy, class Element, class Sum>
struct PackOf {
  using type = Sum;
};
template <GemmPolicy policy, class Element, class Sum>
requires(policy.multiply == Multiply::fma &&
         policy.main_loop == MainLoop::multistage) struct PackOf<policy, Element, Sum> {
  using type = Element;
};
template <GemmPolicy policy, class Sum>
requires(policy.multiply == Multiply::dp4a) struct PackOf<policy, s8, Sum> {
  using type = SignedBytes;
};
template <GemmPolicy policy, class Sum>
requires(policy.multiply == Multiply::dp4a) struct PackOf<policy, u8, Sum> {
  using type = UnsignedBytes;
};

// The product of a block tile: what a main loop needs. SourceA and SourceB are OperandSources, Sum is the
// type that products are added in.
template <GemmPolicy gemm_policy, class SourceA_, class SourceB_, class Sum_>
struct ProductTraits {
  static_assert(SourceRequirements<SourceA_>::satisfied && SourceRequirements<SourceB_>::satisfied);
  static constexpr GemmPolicy policy = gemm_policy;
  using SourceA = SourceA_;
  using SourceB = SourceB_;
  using Sum = Sum_;
  using Requirements = ProductRequirements<policy, typename SourceA::Element, typename SourceB::Element, Sum>;
  static_assert(Requirements::satisfied);

  static constexpr int threads = policy.threads();
  static constexpr int pack_depth = pack_depth_of(policy.multiply);
  static constexpr int packs_deep = policy.block_k / pack_depth;
  using PackA = typename PackOf<policy, typename SourceA::Element, Sum>::type;
  using PackB = typename PackOf<policy, typename SourceB::Element, Sum>::type;
  using TileA = SharedTile<PackA, packs_deep, policy.block_m>;
  using TileB = SharedTile<PackB, packs_deep, policy.block_n>;
  static constexpr bool by_copies = policy.main_loop == MainLoop::multistage;
  using LoaderA = OperandLoader<SourceA, TileA, pack_depth, threads, policy.whole, by_copies>;
  using LoaderB = OperandLoader<SourceB, TileB, pack_depth, threads, policy.whole, by_copies>;
  using Fragment = Fragments<PackA, PackB, policy.thread_m, policy.thread_n>;
  using Product = Accumulators<policy.multiply, Sum, policy.thread_m, policy.thread_n>;

  struct SharedStorage {
    TileA a[policy.stages];
    TileB b[policy.stages];
  };
  using SharedMemory = required::SharedMemoryOfABlock<static_cast<int>(sizeof(SharedStorage))>;
  static_assert(sizeof(SharedMemory) > 0);

  static constexpr LinePartition partition_m =
      operand_partition<PackA>(policy.warp_m, policy.lanes_m(), policy.thread_m);
  static constexpr LinePartition partition_n =
      operand_partition<PackB>(policy.warp_n, policy.lanes_n(), policy.thread_n);

  COSMATI_DEVICE static ThreadPlace place(int thread) {
    return thread_place(thread, policy.warps_m(), policy.lanes_m(), policy.lanes_n());
  }
  COSMATI_DEVICE static void read(Fragment& fragment, SharedStorage const& shared, int stage, int depth,
                                  ThreadPlace const& place) {
    read_fragment<policy.warp_m, policy.lanes_m()>(fragment.a, shared.a[stage], depth, place.warp_m,
                                                   place.lane_m);
    read_fragment<policy.warp_n, policy.lanes_n()>(fragment.b, shared.b[stage], depth, place.warp_n,
                                                   place.lane_n);
  }
};

// The code that a policy's main loop names; each has a file of its own.
template <MainLoop main_loop, class Traits>
struct MainLoopOf {
  static_assert(!is_same<Traits, Traits>,
                "the header of this main loop is not included: cosmati/gemm/kernel.h brings them all");
};

}  // namespace cosmati
