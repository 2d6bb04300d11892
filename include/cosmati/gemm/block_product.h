// Block-level matrix product for user kernels: all threads of a block multiply tiles together and keep the
// sums in registers.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/multistage.h"
#include "cosmati/gemm/scheduler.h"

namespace cosmati {

// Traits: a ProductTraits<policy, SourceA, SourceB, Sum>. Use:
//
//   __shared__ typename Block::SharedStorage storage;     // or a part of dynamic shared memory
//   Block block(storage);
//   auto const sums = block.multiply(a, b, k);            // a and b: sources made for this block's tile
//   block.for_each(sums, [&](int m, int n, float sum) { if (...) d[...] = sum; });
template <class Traits>
class BlockProduct {
  using Loop = MainLoopOf<Traits::policy.main_loop, Traits>;

 public:
  using SharedStorage = typename Loop::SharedStorage;  // 16-byte aligned
  using SourceA = typename Traits::SourceA;
  using SourceB = typename Traits::SourceB;
  using Sum = typename Traits::Sum;
  using Sums = typename Traits::Product;           // (thread_m, thread_n), initially zero
  static constexpr int threads = Traits::threads;  // blockDim.x, and blockDim.y = blockDim.z = 1
  static constexpr int block_m = Traits::policy.block_m, block_n = Traits::policy.block_n;

  COSMATI_DEVICE explicit BlockProduct(SharedStorage& shared) : shared_(shared) {}

  // Returns the sum over k in [0, depth_extent) of a(m, k) * b(k, n) for the tile of the sources. All threads
  // of the block must call it, and must not use the storage for other purposes until it returns. Operands are
  // read through the non-coherent cache: nothing may write them while the kernel runs.
  COSMATI_DEVICE Sums multiply(SourceA const& a, SourceB const& b, Index depth_extent) const {
    Sums sums;
    add(sums, a, b, depth_extent);
    return sums;
  }

  // Adds the product to `sums`, e.g. for A1 * B1 + A2 * B2 in one epilogue.
  COSMATI_DEVICE void add(Sums& sums, SourceA const& a, SourceB const& b, Index depth_extent) const {
    int const steps = static_cast<int>(ceiling_divide(depth_extent, Traits::policy.block_k));
    Loop::run(sums, shared_, a, b, {0, steps});
    arch::block_barrier();  // all threads have read the last step
  }

  // Calls visit(m, n, sum) for each element of the tile that this thread holds, in runs along n, including
  // elements beyond the edge of D.
  template <class Visit>
  COSMATI_DEVICE void for_each(Sums const& sums, Visit&& visit) const {
    static_assert(Traits::policy.multiply != Multiply::wmma,
                  "multiply wmma: the thread that holds an element is unspecified; store the sums with "
                  "Sums::store_row()");
    constexpr LinePartition partition_m = Traits::partition_m, partition_n = Traits::partition_n;
    ThreadPlace const place = Traits::place(arch::thread());
    COSMATI_UNROLL
    for (int i = 0; i < Traits::policy.thread_m; ++i) {
      COSMATI_UNROLL
      for (int j = 0; j < Traits::policy.thread_n; ++j)
        visit(partition_m.position(place.warp_m, place.lane_m, i),
              partition_n.position(place.warp_n, place.lane_n, j), sums.get(i, j));
    }
  }

 private:
  SharedStorage& shared_;
};

}  // namespace cosmati
