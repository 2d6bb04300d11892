// Reduction across the blocks of a cluster that share a tile of D, each summing a part of k. Each block sends
// the others their slices of its sums through distributed shared memory, adds its own slice in the order of
// the parts, and continues with it.
#pragma once
#include "cosmati/arch/barrier.h"
#include "cosmati/arch/cluster.h"
#include "cosmati/arch/memory.h"
#include "cosmati/gemm/warpgroup_product.h"

namespace cosmati {

template <class Product, int parts, int threads>
struct ClusterSum {
  using Register = typename Product::Register;
  using Slice = WarpgroupAccumulators<typename Product::Sum, Product::rows, Product::columns / parts>;
  static constexpr int width = Slice::registers_of_block < 4 ? Slice::registers_of_block : 4;
  using Run = Vector<Register, width>;
  static constexpr int blocks = Product::rows / 2, runs_n = Slice::registers_of_block / width,
                       runs = blocks * runs_n;

  struct SharedStorage {
    Run sums[parts][runs][threads];
    arch::Barrier full, empty;  // all parts have arrived; all blocks have read theirs
  };
  COSMATI_DEVICE static void init(SharedStorage& shared) {
    arch::init(shared.full, parts * threads / 32);
    arch::init(shared.empty, parts * threads / 32);
  }

  // Returns slice `block` (an equal share of each row's columns) of the total of all parts. `round` counts
  // the calls.
  COSMATI_DEVICE static Slice slice(Product const& sums, SharedStorage& shared, int block, int round) {
    int const thread = arch::thread(), lane = thread % 32;
    arch::acquire(shared.empty, round % 2 ^ 1);
    COSMATI_UNROLL
    for (int to = 0; to < parts; ++to) {
      Run* const there = arch::in_block(&shared.sums[block][0][thread], to);  // (runs, threads)
      COSMATI_UNROLL
      for (int run = 0; run < runs; ++run) {
        Register const* const from = &sums.value[run / runs_n][(to * runs_n + run % runs_n) * width];
        Run own;
        COSMATI_UNROLL
        for (int i = 0; i < width; ++i) own[i] = from[i];
        arch::store(there + run * threads, own);
      }
    }
    arch::warp_barrier();  // makes all lanes' stores visible to the releasing lane
    if (lane < parts) arch::release_to(shared.full, lane);
    arch::acquire(shared.full, round % 2);
    Slice whole;
    COSMATI_UNROLL
    for (int run = 0; run < runs; ++run) {
      Run total = shared.sums[0][run][thread];
      COSMATI_UNROLL
      for (int part = 1; part < parts; ++part) {
        Run const more = shared.sums[part][run][thread];
        COSMATI_UNROLL
        for (int i = 0; i < width; ++i) Slice::add(total[i], more[i]);
      }
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i) whole.value[run / runs_n][run % runs_n * width + i] = total[i];
    }
    arch::warp_barrier();
    if (lane < parts) arch::release_to(shared.empty, lane);
    return whole;
  }

  // Must be called before the block exits, after `rounds` calls: waits for the last arrivals at its barriers.
  COSMATI_DEVICE static void finish(SharedStorage& shared, int rounds) {
    if (rounds > 0) arch::wait(shared.empty, (rounds - 1) % 2);
  }
};

}  // namespace cosmati
