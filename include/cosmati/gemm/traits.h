// The trait type of a kernel: everything that the parts of a GEMM share.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/policy.h"
#include "cosmati/gemm/requirements.h"
#include "cosmati/gemm/source.h"
#include "cosmati/tile/accumulators.h"
#include "cosmati/tile/double_fragment.h"
#include "cosmati/tile/fragment.h"
#include "cosmati/tile/matrix_fragment.h"
#include "cosmati/tile/operand_loader.h"
#include "cosmati/tile/padded_loader.h"
#include "cosmati/tile/swizzled_loader.h"
#include "cosmati/tile/wmma_fragment.h"

namespace cosmati {

// The element type in shared memory of one depth of an operand. The double-buffered loop converts to the
// accumulator type while storing; cp.async cannot.
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

// The same for A, whose f16 elements are duplicated because each is multiplied by two columns at once.
template <GemmPolicy policy, class Element, class Sum>
struct PackOfA : PackOf<policy, Element, Sum> {};
template <GemmPolicy policy, class Element, class Sum>
requires(policy.multiply == Multiply::half2 &&
         policy.main_loop == MainLoop::double_buffered) struct PackOfA<policy, Element, Sum> {
  using type = arch::HalfPair;
};

// How operands get to the multiply instruction: tiles in shared memory, their loaders, fragments and sums.
// This version is for multiplication by individual threads.
template <GemmPolicy policy, class SourceA, class SourceB, class Sum>
struct MultiplyPath {
  static constexpr int pack_depth = pack_depth_of(policy.multiply, 1);
  static constexpr int packs_deep = policy.block_k / pack_depth;
  using PackA = typename PackOfA<policy, typename SourceA::Element, Sum>::type;
  using PackB = typename PackOf<policy, typename SourceB::Element, Sum>::type;
  using TileA = SharedTile<PackA, packs_deep, policy.block_m>;
  using TileB = SharedTile<PackB, packs_deep, policy.block_n>;
  static constexpr bool by_copies = policy.main_loop == MainLoop::multistage;
  using LoaderA = OperandLoader<SourceA, TileA, pack_depth, policy.team(), policy.full_tiles, by_copies>;
  using LoaderB = OperandLoader<SourceB, TileB, pack_depth, policy.team(), policy.full_tiles, by_copies>;
  using Fragment = Fragments<PackA, PackB, policy.thread_m, policy.thread_n>;
  using Product = Accumulators<policy.multiply, Sum, policy.thread_m, policy.thread_n>;

  static constexpr LinePartition partition_m =
      operand_partition<PackA>(policy.warp_m, policy.lanes_m(), policy.thread_m);
  static constexpr LinePartition partition_n =
      operand_partition<PackB>(policy.warp_n, policy.lanes_n(), policy.thread_n);
  COSMATI_DEVICE static ThreadPlace place(int thread) {
    return thread_place(thread, policy.warps_m(), policy.lanes_m(), policy.lanes_n());
  }
  COSMATI_DEVICE static void read(Fragment& fragment, TileA const& a, TileB const& b, int depth,
                                  ThreadPlace const& place) {
    // B first: a row of products needs all of B, but one value of A.
    read_fragment<policy.warp_n, policy.lanes_n()>(fragment.b, b, depth, place.warp_n, place.lane_n);
    read_fragment<policy.warp_m, policy.lanes_m()>(fragment.a, a, depth, place.warp_m, place.lane_m);
  }
};

// The tile of an operand that tensor cores read, and what fills it. 4-byte elements that are contiguous along
// m or n are read word by word: in padded lines, all of a thread's addresses differ by constants.
template <GemmPolicy policy, class Source, int outer>
struct MatrixOperand {
  using Tile = SwizzledTile<typename Source::Element, Source::along, policy.block_k, outer>;
  using Loader = SwizzledLoader<Source, Tile, policy.team(), policy.full_tiles>;
};
template <GemmPolicy policy, class Source, int outer>
requires(Source::along == Along::mn &&
         sizeof(typename Source::Element) == 4) struct MatrixOperand<policy, Source, outer> {
  using Tile = PaddedTile<typename Source::Element, Source::along, policy.block_k, outer>;
  using Loader = PaddedLoader<Source, Tile, policy.team(), policy.full_tiles>;
};

// The version for tensor cores, which read operands without conversion.
template <GemmPolicy policy, class SourceA, class SourceB, class Sum>
requires(policy.multiply == Multiply::mma &&
         !is_same<Sum, f64>) struct MultiplyPath<policy, SourceA, SourceB, Sum> {
  using ElementA = typename SourceA::Element;
  using ElementB = typename SourceB::Element;
  static constexpr int pack_depth = pack_depth_of(policy.multiply, static_cast<int>(sizeof(ElementA)));
  static constexpr int packs_deep = policy.block_k / pack_depth;
  using OperandA = MatrixOperand<policy, SourceA, policy.block_m>;
  using OperandB = MatrixOperand<policy, SourceB, policy.block_n>;
  using TileA = typename OperandA::Tile;
  using TileB = typename OperandB::Tile;
  using LoaderA = typename OperandA::Loader;
  using LoaderB = typename OperandB::Loader;
  using Fragment = MatrixFragments<ElementA, ElementB, policy.warp_m, policy.warp_n>;
  using Product = MatrixAccumulators<Sum, policy.thread_m, policy.thread_n>;

  static constexpr LinePartition partition_m{policy.warp_m, 8, policy.thread_m, 1};
  static constexpr LinePartition partition_n{policy.warp_n, 4, policy.thread_n, 2};
  COSMATI_DEVICE static ThreadPlace place(int thread) { return matrix_place(thread, policy.warps_m()); }
  COSMATI_DEVICE static void read(Fragment& fragment, TileA const& a, TileB const& b, int pack,
                                  ThreadPlace const& place) {
    read_matrix_fragment<Fragment, TileA, TileB, policy.warp_m, policy.warp_n>(fragment, a, b, pack, place);
  }
};

// The version for f64 tensor cores, which read the same tiles as single-thread multiplies.
template <GemmPolicy policy, class SourceA, class SourceB>
requires(policy.multiply == Multiply::mma) struct MultiplyPath<policy, SourceA, SourceB, f64> {
  static constexpr int packs_deep = policy.block_k / pack_depth_of(Multiply::mma, 8);
  using TileA = SharedTile<f64, policy.block_k, policy.block_m>;
  using TileB = SharedTile<f64, policy.block_k, policy.block_n>;
  using LoaderA = OperandLoader<SourceA, TileA, 1, policy.team(), policy.full_tiles, true>;
  using LoaderB = OperandLoader<SourceB, TileB, 1, policy.team(), policy.full_tiles, true>;
  using Fragment = DoubleFragments<policy.warp_m, policy.warp_n>;
  using Product = DoubleAccumulators<policy.thread_m, policy.thread_n>;

  static constexpr LinePartition partition_m{policy.warp_m, 8, policy.thread_m, 2};
  static constexpr LinePartition partition_n{policy.warp_n, 4, policy.thread_n, 4};
  COSMATI_DEVICE static ThreadPlace place(int thread) { return matrix_place(thread, policy.warps_m()); }
  COSMATI_DEVICE static void read(Fragment& fragment, TileA const& a, TileB const& b, int pack,
                                  ThreadPlace const& place) {
    read_double_fragment(fragment, a, b, pack, place);
  }
};

// The version for fragments of unspecified layout, which are loaded from padded lines.
template <GemmPolicy policy, class SourceA, class SourceB, class Sum>
requires(policy.multiply == Multiply::wmma) struct MultiplyPath<policy, SourceA, SourceB, Sum> {
  using Element = typename SourceA::Element;
  static constexpr int pack_depth = pack_depth_of(policy.multiply, static_cast<int>(sizeof(Element)));
  static constexpr int packs_deep = policy.block_k / pack_depth;
  using TileA = PaddedTile<Element, SourceA::along, policy.block_k, policy.block_m>;
  using TileB = PaddedTile<Element, SourceB::along, policy.block_k, policy.block_n>;
  using LoaderA = PaddedLoader<SourceA, TileA, policy.team(), policy.full_tiles>;
  using LoaderB = PaddedLoader<SourceB, TileB, policy.team(), policy.full_tiles>;
  using Fragment = WmmaFragments<Element, SourceA::along, SourceB::along, policy.warp_m, policy.warp_n>;
  using Product = WmmaAccumulators<Element, Sum, policy.warp_m, policy.warp_n>;

  COSMATI_DEVICE static ThreadPlace place(int thread) { return matrix_place(thread, policy.warps_m()); }
  COSMATI_DEVICE static void read(Fragment& fragment, TileA const& a, TileB const& b, int pack,
                                  ThreadPlace const& place) {
    fragment.read(a, b, pack, place.warp_m * policy.warp_m, place.warp_n * policy.warp_n);
  }
};

// A separate base class, so that these messages appear before the errors that follow from them.
template <GemmPolicy policy, class SourceA, class SourceB, class Sum>
struct CheckedProduct {
  static_assert(SourceRequirements<SourceA>::satisfied && SourceRequirements<SourceB>::satisfied);
  using Requirements = ProductRequirements<policy, typename SourceA::Element, typename SourceB::Element, Sum>;
  static_assert(Requirements::satisfied);
};

// The product of a block tile: what a main loop needs. SourceA and SourceB are OperandSources, Sum is the
// type that products are added in.
template <GemmPolicy gemm_policy, class SourceA_, class SourceB_, class Sum_>
struct ProductTraits : CheckedProduct<gemm_policy, SourceA_, SourceB_, Sum_>,
                       MultiplyPath<gemm_policy, SourceA_, SourceB_, Sum_> {
  static constexpr GemmPolicy policy = gemm_policy;
  using SourceA = SourceA_;
  using SourceB = SourceB_;
  using Sum = Sum_;
  using Path = MultiplyPath<policy, SourceA, SourceB, Sum>;
  static constexpr int threads = policy.threads();
  // The index of a thread among those that share its tile.
  COSMATI_DEVICE static int thread() {
    return policy.matrices > 1 ? arch::thread() % policy.team() : arch::thread();
  }

  struct SharedStorage {
    typename Path::TileA a[policy.stages];
    typename Path::TileB b[policy.stages];
  };
  using SharedMemory = required::SharedMemoryOfABlock<static_cast<int>(sizeof(SharedStorage))>;
  static_assert(sizeof(SharedMemory) > 0);

  COSMATI_DEVICE static void read(typename Path::Fragment& fragment, SharedStorage const& shared, int stage,
                                  int depth, ThreadPlace const& place) {
    Path::read(fragment, shared.a[stage], shared.b[stage], depth, place);
  }
};

// The implementation of a policy's main loop; each is in its own file.
template <MainLoop main_loop, class Traits>
struct MainLoopOf {
  static_assert(!is_same<Traits, Traits>,
                "the header of this main loop is not included: cosmati/gemm/kernel.h includes all of them");
};

}  // namespace cosmati
