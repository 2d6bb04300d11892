// The GEMM kernel: d(m, n) = epilogue(sum over k of a(m, k) * b(k, n)), for every batch.
#pragma once
#include "cosmati/gemm/epilogue_schedule.h"
#include "cosmati/gemm/multistage.h"
#include "cosmati/gemm/small/gemv.h"
#include "cosmati/gemm/small/tiny.h"
#include "cosmati/gemm/stream_k.h"
#include "cosmati/gemm/wmma_epilogue.h"

namespace cosmati {

template <GemmPolicy policy, class SourceA, class SourceB, class Sum, class Epilogue_, class Destination_>
struct GemmTraits : ProductTraits<policy, SourceA, SourceB, Sum> {
  using BlockProduct = ProductTraits<policy, SourceA, SourceB, Sum>;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  static_assert(EpilogueRequirements<Epilogue>::satisfied);
  static_assert(DestinationRequirements<Destination, typename Epilogue::Real>::satisfied);
  using Params = GemmParameters<typename SourceA::Arguments, typename SourceB::Arguments,
                                typename Epilogue::Arguments, typename Destination::Arguments>;
  using Loop = MainLoopOf<policy.main_loop, BlockProduct>;
  using ToDestination = EpilogueScheduleOf<policy.epilogue, BlockProduct, Epilogue, Destination>;

  // Used by the main loop first, then by the epilogue.
  union SharedStorage {
    COSMATI_DEVICE SharedStorage() {}
    typename Loop::SharedStorage main_loop;
    typename ToDestination::SharedStorage epilogue;
  };
  using SharedMemory = required::SharedMemoryOfABlock<static_cast<int>(sizeof(SharedStorage))>;
  static_assert(sizeof(SharedMemory) > 0);
};

// sums += a(m, k) * b(k, n) over the steps' k, for one tile.
template <class Traits>
COSMATI_DEVICE void multiply_tile(typename Traits::Product& sums, typename Traits::SharedStorage& shared,
                                  typename Traits::Params const& params, TileIndex tile, Index batch,
                                  StepRange steps) {
  Index const first_m = Index{tile.m} * Traits::policy.block_m,
              first_n = Index{tile.n} * Traits::policy.block_n;
  typename Traits::SourceA const a(params.a, batch, first_m, params.m, params.k);
  typename Traits::SourceB const b(params.b, batch, first_n, params.n, params.k);
  Traits::Loop::run(sums, shared.main_loop, a, b, steps);
}

template <class Traits>
COSMATI_DEVICE void store_tile(typename Traits::Product const& sums, typename Traits::SharedStorage& shared,
                               typename Traits::Params const& params, TileIndex tile, Index batch) {
  Index const first_m = Index{tile.m} * Traits::policy.block_m,
              first_n = Index{tile.n} * Traits::policy.block_n;
  TileOfResult const at{batch, first_m, first_n, clamp_to_int(params.m - first_m),
                        clamp_to_int(params.n - first_n)};
  Traits::ToDestination::run(sums, shared.epilogue, params.epilogue, params.d, at);
}

// Computes one tile, or with split-K a part of its k, determined by the block index.
template <class Traits>
COSMATI_DEVICE void compute_part(typename Traits::SharedStorage& shared,
                                 typename Traits::Params const& params) {
  constexpr GemmPolicy policy = Traits::policy;
  constexpr bool splits_k = policy.partition == Partition::split_k;
  int const tiles_m = static_cast<int>(ceiling_divide(params.m, policy.block_m));
  int const tiles_n = static_cast<int>(ceiling_divide(params.n, policy.block_n));
  int const steps = static_cast<int>(ceiling_divide(params.k, policy.block_k));
  int const index = arch::block_x(), part = splits_k ? arch::block_y() : 0;
  TileIndex const tile = raster_tile(policy.raster, policy.raster_width, tiles_m, tiles_n, index);
  StepRange const range = splits_k ? part_of_steps(steps, part, params.schedule.splits) : StepRange{0, steps};
  Index const batch = params.schedule.first_batch + arch::block_z();
  typename Traits::Product sums;  // (thread_m, thread_n)
  multiply_tile<Traits>(sums, shared, params, tile, batch, range);
  if constexpr (splits_k) {
    Index const number = arch::block_z() * Index{tiles_m} * tiles_n + index;
    if (!combine_parts(sums, params.schedule, number, part, BlockTeam<Traits::threads>{})) return;
  }
  store_tile<Traits>(sums, shared, params, tile, batch);
}

// Stream-K: processes the pieces of the block's range of steps, then complete tiles.
template <class Traits>
COSMATI_DEVICE void compute_stream(typename Traits::SharedStorage& shared,
                                   typename Traits::Params const& params) {
  using Scheduler = StreamScheduler<Traits::policy>;
  COSMATI_NO_UNROLL
  for (Scheduler scheduler(params.m, params.n, params.k, params.schedule, {0, 0, 0}); scheduler.more();
       scheduler.advance()) {
    TileOfWork const work = scheduler.work();
    typename Traits::Product sums;  // (thread_m, thread_n)
    arch::block_barrier();          // the previous piece has released the shared memory
    multiply_tile<Traits>(sums, shared, params, work.tile, work.batch, work.steps);
    if (scheduler.combine(sums, params.schedule, work, BlockTeam<Traits::threads>{}))
      store_tile<Traits>(sums, shared, params, work.tile, work.batch);
  }
}

// Computes one tile of as many matrices as the block has warps.
template <class Traits>
COSMATI_DEVICE void compute_matrices(typename Traits::SharedStorage& shared,
                                     typename Traits::Params const& params) {
  constexpr GemmPolicy policy = Traits::policy;
  int const tiles_m = static_cast<int>(ceiling_divide(params.m, policy.block_m));
  int const tiles_n = static_cast<int>(ceiling_divide(params.n, policy.block_n));
  int const steps = static_cast<int>(ceiling_divide(params.k, policy.block_k));
  Index const index =
      Index{arch::block_z()} * policy.matrices + arch::uniform(arch::thread() / policy.team());
  if (index >= params.schedule.batch) return;
  TileIndex const tile = raster_tile(policy.raster, policy.raster_width, tiles_m, tiles_n, arch::block_x());
  Index const batch = params.schedule.first_batch + index;
  typename Traits::Product sums;  // (thread_m, thread_n)
  multiply_tile<Traits>(sums, shared, params, tile, batch, {0, steps});
  store_tile<Traits>(sums, shared, params, tile, batch);
}

// Grid: (tiles of D, parts of k, matrices of the batch), with stream-K (resident blocks, 1, 1), with tiny
// (tiles, 1, groups of policy.matrices matrices); block: policy.threads(); dynamic shared memory:
// SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::policy.blocks)
gemm_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  if constexpr (Traits::policy.main_loop == MainLoop::tiny)
    compute_matrices<Traits>(shared, params);
  else if constexpr (Traits::policy.partition == Partition::stream_k)
    compute_stream<Traits>(shared, params);
  else
    compute_part<Traits>(shared, params);
}

}  // namespace cosmati
