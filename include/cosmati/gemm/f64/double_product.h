// The product of a block's warps by the f64 tensor cores, from operands that TMA wrote: what warp_specialized
// needs instead of wgmma, which has no f64.
#pragma once
#include "cosmati/gemm/warpgroup_product.h"
#include "cosmati/gemm/warpgroup_requirements.h"
#include "cosmati/tile/double_lines.h"

namespace cosmati {

namespace required {

template <GemmPolicy p>
struct WarpsOfDoubles {
  static_assert(p.main_loop == MainLoop::warp_specialized && p.multiply == Multiply::mma,
                "warp_specialized multiplies f64 by mma");
  static_assert(p.block_k % 16 == 0, "warp_specialized in f64: a step must have a multiple of 16 elements");
  static_assert(
      p.warp_m % 16 == 0 && p.warp_n % 16 == 0 && p.thread_m * 8 == p.warp_m && p.thread_n * 4 == p.warp_n,
      "multiply mma in f64: warp_m and warp_n must be multiples of 16, thread_m is warp_m / 8, thread_n is "
      "warp_n / 4");
  static_assert(divides(16, p.block_m) && divides(16, p.block_n) && p.block_m <= 256 && p.block_n <= 256,
                "warp_specialized in f64: block_m and block_n must be multiples of 16, at most 256");
  static_assert(divides(p.warp_m, p.block_m) && divides(p.warp_n, p.block_n) &&
                    divides(4, p.consumer_warps()),
                "warp_specialized: a block tile must have a multiple of four warps");
  static_assert(p.cluster_k == 1 && p.epilogue == EpilogueSchedule::direct,
                "warp_specialized in f64 requires cluster_k = 1 and the direct epilogue");
};

}  // namespace required

template <GemmPolicy p, class SourceA, class SourceB>
struct CheckedWarpgroups<p, SourceA, SourceB, double> {
  static_assert(is_same<typename SourceA::Element, double> && is_same<typename SourceB::Element, double>,
                "warp_specialized with sums in f64 requires two operands of f64");
  using Requirements = required::WarpsOfDoubles<p>;
  static_assert(sizeof(Requirements) > 0);
  using Consumers = required::Consumers<required::quotient(p.consumer_warps(), 4), p.ping_pong>;
  static_assert(sizeof(Consumers) > 0);
  using Cluster = required::Cluster<p.cluster_m, p.cluster_n, max_cluster_blocks>;
  static_assert(sizeof(Cluster) > 0);
};

// The operand tiles of one step, the sums, and their product; has the interface of a warpgroup's.
template <GemmPolicy gemm_policy, class SourceA, class SourceB>
struct WarpgroupProduct<gemm_policy, SourceA, SourceB, double> {
  static constexpr GemmPolicy policy = gemm_policy;
  using ElementA = typename SourceA::Element;
  using ElementB = typename SourceB::Element;
  using TileA = TensorTile<ElementA, SourceA::along, policy.block_k, policy.block_m, policy.cluster_n>;
  using TileB = TensorTile<ElementB, SourceB::along, policy.block_k, policy.block_n, policy.cluster_m>;
  using LinesA = DoubleLines<TileA, true>;
  using LinesB = DoubleLines<TileB, false>;
  using Product = DoubleSums<policy.thread_m, policy.thread_n, LinesB::deep>;
  // multiply() has read its stage when it returns, as if sums were promoted.
  static constexpr bool promotes = true;
  struct Fragments {};
  static constexpr int groups_of_a_step = 1;

  static constexpr int warps = policy.warps_m() * policy.warps_n();
  static constexpr LinePartition partition_m{policy.warp_m, 8, policy.thread_m, LinesA::deep ? 1 : 2};
  static constexpr LinePartition partition_n{policy.warp_n, 4, policy.thread_n, LinesB::deep ? 1 : 4};
  COSMATI_CONSTEXPR static int row_of_warp(int i) { return i; }
  COSMATI_DEVICE static ThreadPlace place(int thread) {
    int const warp = thread / 32 % warps, g = thread % 32 / 4;
    return {warp % policy.warps_m(), warp / policy.warps_m(), LinesA::deep ? LinesA::line(g) : g, thread % 4};
  }

  LinesA a;
  LinesB b;
  COSMATI_DEVICE WarpgroupProduct(TileA const& tile_a, TileB const& tile_b, int)
      : a(tile_a, place(arch::thread()).warp_m * policy.warp_m),
        b(tile_b, place(arch::thread()).warp_n * policy.warp_n) {}

  // sums += a * b over the step in `stage`.
  COSMATI_DEVICE void multiply(Product& sums, Fragments&, int stage, bool) const {
    COSMATI_UNROLL
    for (int octet = 0; octet < policy.block_k / 8; ++octet) {
      typename Product::Fragments fragments;
      read(fragments, stage, octet);
      sums.add_products(fragments);
    }
    // Without this fence, TMA may overwrite the stage before the last loads have read it (seen on an H200).
    arch::publish_to_async();
    arch::warp_barrier();
  }

 private:
  COSMATI_DEVICE void read(typename Product::Fragments& fragments, int stage, int octet) const {
    COSMATI_UNROLL
    for (int j = 0; j < policy.warp_n / 16; ++j) b.read(fragments.b[j], stage, octet, j);
    COSMATI_UNROLL
    for (int i = 0; i < policy.warp_m / 16; ++i) a.read(fragments.a[i], stage, octet, i);
  }
};

}  // namespace cosmati
