// The tiles of a block in warp_specialized_kernel: like TileScheduler (gemm/persistent.h), but over the
// phases of a strided data gradient, those with the longest sums first.
#pragma once
#include "cosmati/conv/phases_arguments.h"
#include "cosmati/gemm/persistent.h"

namespace cosmati {

// first_block counts clusters; launch.blocks is the number of clusters that have a tile or, with split-K, a
// part of one.
template <class Traits, int max_phases>
class PhaseScheduler {
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr int cluster = policy.cluster();
  using Tiles = ClusterTiles<policy>;
  static_assert(policy.partition != Partition::stream_k, "stream-K ranges of steps cannot span phases");

 public:
  using Launch = PhasesParameters<typename Traits::Params, max_phases>;

  COSMATI_DEVICE PhaseScheduler(Launch const& launch, ClusterPlace place)
      : launch_(launch), place_(place), index_(arch::block_x() / cluster) {
    find();
  }
  COSMATI_DEVICE static void prefetch(Launch const&) {}  // the first tensor maps are not known yet

  COSMATI_DEVICE typename Traits::Params const& problem() const { return launch_.phase[number_]; }
  COSMATI_DEVICE bool more() const { return index_ < launch_.blocks; }
  COSMATI_DEVICE bool is_last() const { return index_ + arch::grid_x() / cluster >= launch_.blocks; }
  COSMATI_DEVICE void advance() {
    index_ += arch::grid_x() / cluster;
    find();
  }

  COSMATI_DEVICE StepRange steps() const { return steps_of(Tiles::splits_k ? rest() / tiles_.count() : 0); }

  COSMATI_DEVICE TileOfWork work() const {
    int const tiles = tiles_.count(), part = Tiles::splits_k ? rest() / tiles : 0;
    TileIndex const tile = tiles_.tile(rest() - part * tiles, place_);
    return {tile, 0, tile.n * tiles_.m * policy.cluster_m + tile.m, part, steps_of(part)};
  }

  template <class Sums, class Team>
  COSMATI_DEVICE bool combine(Sums& sums, ScheduleArguments const& schedule, TileOfWork const& work,
                              Team const& team) const {
    if constexpr (!Tiles::adds_parts) return true;
    return combine_parts(sums, schedule, Index{work.number} * policy.cluster_k + place_.k, work.part, team);
  }

 private:
  COSMATI_DEVICE void find() {
    while (number_ + 1 < launch_.count && launch_.first_block[number_ + 1] <= index_) ++number_;
    tiles_ = Tiles(problem().m, problem().n, problem().k);
  }
  COSMATI_DEVICE int rest() const { return index_ - launch_.first_block[number_]; }
  COSMATI_DEVICE StepRange steps_of(int part) const {
    return tiles_.steps_of(part, problem().schedule.splits, place_);
  }

  Launch const& launch_;
  ClusterPlace place_;
  Tiles tiles_;
  int index_, number_ = 0;
};

}  // namespace cosmati
