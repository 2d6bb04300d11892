// The products of a strided data gradient, one per phase, in one launch: together their tiles fill the GPU,
// and the longest sums start first.
#pragma once
#include "cosmati/conv/phases_arguments.h"
#include "cosmati/gemm/kernel.h"

namespace cosmati {

// Like gemm_kernel, and built from the same functions. It is separate because indexing the parameters costs
// instructions in the main loop. Grid: (tiles of all phases, parts of k, groups); stream-K is not supported.
template <class Traits, int max_phases>
COSMATI_KERNEL(Traits::threads, Traits::policy.blocks)
gemm_of_phases_kernel(COSMATI_PARAMETER PhasesParameters<typename Traits::Params, max_phases> phases) {
  constexpr GemmPolicy policy = Traits::policy;
  constexpr bool splits_k = policy.partition == Partition::split_k;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  int const phase = phase_of_block(phases, arch::block_x());
  typename Traits::Params const& params = phases.phase[phase];
  int const index = arch::block_x() - phases.first_block[phase], part = splits_k ? arch::block_y() : 0;
  int const tiles_m = static_cast<int>(ceiling_divide(params.m, policy.block_m));
  int const tiles_n = static_cast<int>(ceiling_divide(params.n, policy.block_n));
  int const steps = static_cast<int>(ceiling_divide(params.k, policy.block_k));
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

}  // namespace cosmati
