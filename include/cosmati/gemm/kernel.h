// The GEMM kernel: d(m, n) = epilogue(sum over k of a(m, k) * b(k, n)), for every batch.
#pragma once
#include "cosmati/gemm/epilogue_schedule.h"
#include "cosmati/gemm/multistage.h"
#include "cosmati/gemm/scheduler.h"
#include "cosmati/gemm/split_k.h"

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

  // The main loop and the epilogue use it one after the other.
  union SharedStorage {
    COSMATI_DEVICE SharedStorage() {}
    typename Loop::SharedStorage main_loop;
    typename ToDestination::SharedStorage epilogue;
  };
  using SharedMemory = required::SharedMemoryOfABlock<static_cast<int>(sizeof(SharedStorage))>;
  static_assert(sizeof(SharedMemory) > 0);
};

// Grid: (tiles of D, parts of k, matrices of the batch); block: policy.threads(); dynamic shared memory:
// SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::policy.blocks)
gemm_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  constexpr GemmPolicy policy = Traits::policy;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();

  int const tiles_m = static_cast<int>(ceiling_divide(params.m, policy.block_m));
  int const tiles_n = static_cast<int>(ceiling_divide(params.n, policy.block_n));
  int const steps = static_cast<int>(ceiling_divide(params.k, policy.block_k));
  int const index = arch::block_x(), part = policy.split_k ? arch::block_y() : 0;
  TileIndex const tile = raster_tile(policy.raster, policy.raster_width, tiles_m, tiles_n, index);
  StepRange const range =
      policy.split_k ? part_of_steps(steps, part, params.schedule.splits) : StepRange{0, steps};
  Index const first_m = Index{tile.m} * policy.block_m, first_n = Index{tile.n} * policy.block_n;

  Index const batch = params.schedule.first_batch + arch::block_z();

  typename Traits::SourceA const a(params.a, batch, first_m, params.m, params.k);
  typename Traits::SourceB const b(params.b, batch, first_n, params.n, params.k);
  typename Traits::Product sums;  // (thread_m, thread_n)
  Traits::Loop::run(sums, shared.main_loop, a, b, range);

  if constexpr (policy.split_k) {
    Index const number = arch::block_z() * Index{tiles_m} * tiles_n + index;
    if (!combine_parts<typename Traits::Product, Traits::threads>(sums, params.schedule, number, part))
      return;
  }
  TileOfResult const at{batch, first_m, first_n, clamp_to_int(params.m - first_m),
                        clamp_to_int(params.n - first_n)};
  Traits::ToDestination::run(sums, shared.epilogue, params.epilogue, params.d, at);
}

}  // namespace cosmati
