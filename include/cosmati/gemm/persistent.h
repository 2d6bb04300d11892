// The tiles of a persistent block: each cluster takes every n-th tile of all matrices and parts of k, in
// raster order.
#pragma once
#include "cosmati/arch/cluster.h"
#include "cosmati/gemm/scheduler.h"
#include "cosmati/gemm/split_k.h"

namespace cosmati {

// The work for one tile. `number` counts the tiles of the launch, `part` the parts of k.
struct TileOfWork {
  TileIndex tile;
  Index batch;
  int number;
  int part;
  StepRange steps;  // every cluster_k-th
};

// The position of a block in its cluster: it computes tile (m, n) of the cluster's cluster_m by cluster_n
// tiles, and part k of cluster_k.
struct ClusterPlace {
  int m, n, k;
};

// The product of the numbers of tiles, matrices and parts of a launch is below 2^31. Usage: for
// (TileScheduler<policy> scheduler(...); scheduler.more(); scheduler.advance()) ... scheduler.work() ...
template <GemmPolicy policy>
class TileScheduler {
  static constexpr int cluster = policy.cluster();
  static constexpr bool adds_parts = policy.partition == Partition::split_k;
  static constexpr bool splits_k = adds_parts || policy.partition == Partition::split_k_parallel;

 public:
  COSMATI_DEVICE TileScheduler(Index m, Index n, Index k, ScheduleArguments const& schedule,
                               ClusterPlace place)
      : tiles_m_(static_cast<int>(ceiling_divide(m, policy.block_m * policy.cluster_m))),
        tiles_n_(static_cast<int>(ceiling_divide(n, policy.block_n * policy.cluster_n))),
        steps_(static_cast<int>(ceiling_divide(k, policy.block_k))),
        splits_(splits_k ? schedule.splits : 1),
        place_(place),
        first_batch_(schedule.first_batch),
        index_(arch::block_x() / cluster),
        last_(static_cast<int>(schedule.batch) * splits_ * tiles_m_ * tiles_n_) {}

  COSMATI_DEVICE bool more() const { return index_ < last_; }
  COSMATI_DEVICE bool is_last() const { return index_ + arch::grid_x() / cluster >= last_; }
  COSMATI_DEVICE void advance() { index_ += arch::grid_x() / cluster; }

  COSMATI_DEVICE StepRange steps() const {
    return steps_of(splits_k ? index_ / (tiles_m_ * tiles_n_) % splits_ : 0);
  }

  COSMATI_DEVICE TileOfWork work() const {
    int const tiles = tiles_m_ * tiles_n_;
    int const matrix = last_ == tiles ? 0 : index_ / (tiles * splits_);
    int const rest = index_ - matrix * tiles * splits_;
    int const part = splits_k ? rest / tiles : 0, at = rest - part * tiles;
    TileIndex tile = raster_tile(policy.raster, policy.raster_width, tiles_m_, tiles_n_, at);
    tile = {tile.m * policy.cluster_m + place_.m, tile.n * policy.cluster_n + place_.n};
    int const number = (matrix * tiles_n_ * policy.cluster_n + tile.n) * tiles_m_ * policy.cluster_m + tile.m;
    return {tile, first_batch_ + matrix, number, part, steps_of(part)};
  }

  // Returns true in the team that continues with the tile's total in `sums`: all of it, or with cluster_k a
  // slice.
  template <class Sums, class Team>
  COSMATI_DEVICE bool combine(Sums& sums, ScheduleArguments const& schedule, TileOfWork const& work,
                              Team const& team) const {
    if constexpr (!adds_parts) return true;
    return combine_parts(sums, schedule, Index{work.number} * policy.cluster_k + place_.k, work.part, team);
  }

 private:
  COSMATI_DEVICE StepRange steps_of(int part) const {
    StepRange const steps =
        splits_k ? part_of_steps(steps_, part, splits_) : StepRange{0, steps_};  // of the cluster
    return {steps.first + place_.k, steps.last};
  }

  int tiles_m_, tiles_n_, steps_, splits_;
  ClusterPlace place_;
  Index first_batch_;
  int index_, last_;
};

}  // namespace cosmati
