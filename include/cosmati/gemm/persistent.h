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

// The tiles of a product, where those of a cluster count as one, and its steps of k.
template <GemmPolicy policy>
struct ClusterTiles {
  static constexpr bool adds_parts = policy.partition == Partition::split_k;
  static constexpr bool splits_k = adds_parts || policy.partition == Partition::split_k_parallel;
  int m = 1, n = 1, steps = 0;

  ClusterTiles() = default;
  COSMATI_DEVICE ClusterTiles(Index rows, Index columns, Index depth)
      : m(static_cast<int>(ceiling_divide(rows, policy.block_m * policy.cluster_m))),
        n(static_cast<int>(ceiling_divide(columns, policy.block_n * policy.cluster_n))),
        steps(static_cast<int>(ceiling_divide(depth, policy.block_k))) {}

  COSMATI_DEVICE int count() const { return m * n; }
  // Returns the tile of the block at `place` in the cluster with number `at` in raster order.
  COSMATI_DEVICE TileIndex tile(int at, ClusterPlace place) const {
    TileIndex const tile = raster_tile(policy.raster, policy.raster_width, m, n, at);
    return {tile.m * policy.cluster_m + place.m, tile.n * policy.cluster_n + place.n};
  }
  // Returns the steps of part `part` of `parts` that the block at `place` of its cluster computes.
  COSMATI_DEVICE StepRange steps_of(int part, int parts, ClusterPlace place) const {
    StepRange const all =
        splits_k ? part_of_steps(steps, part, parts) : StepRange{0, steps};  // of the cluster
    return {all.first + place.k, all.last};
  }
};

// The tiles of a product or a batch of products. StreamScheduler (stream-K), GroupScheduler (grouped
// products) and PhaseScheduler (strided data gradients) have the same functions over other sets of tiles. The
// product of the numbers of tiles, matrices and parts of a launch is below 2^31. Usage: for
// (TileScheduler<policy> scheduler(...); scheduler.more(); scheduler.advance()) ... scheduler.work() ...
template <GemmPolicy policy>
class TileScheduler {
  using Tiles = ClusterTiles<policy>;
  static constexpr int cluster = policy.cluster();

 public:
  COSMATI_DEVICE TileScheduler(Index m, Index n, Index k, ScheduleArguments const& schedule,
                               ClusterPlace place)
      : tiles_(m, n, k),
        splits_(Tiles::splits_k ? schedule.splits : 1),
        place_(place),
        first_batch_(schedule.first_batch),
        index_(arch::block_x() / cluster),
        last_(static_cast<int>(schedule.batch) * splits_ * tiles_.count()) {}

  COSMATI_DEVICE bool more() const { return index_ < last_; }
  COSMATI_DEVICE bool is_last() const { return index_ + arch::grid_x() / cluster >= last_; }
  COSMATI_DEVICE void advance() { index_ += arch::grid_x() / cluster; }

  COSMATI_DEVICE StepRange steps() const {
    return tiles_.steps_of(Tiles::splits_k ? index_ / tiles_.count() % splits_ : 0, splits_, place_);
  }

  COSMATI_DEVICE TileOfWork work() const {
    int const tiles = tiles_.count();
    int const matrix = last_ == tiles ? 0 : index_ / (tiles * splits_);
    int const rest = index_ - matrix * tiles * splits_;
    int const part = Tiles::splits_k ? rest / tiles : 0;
    TileIndex const tile = tiles_.tile(rest - part * tiles, place_);
    int const number = (matrix * tiles_.n * policy.cluster_n + tile.n) * tiles_.m * policy.cluster_m + tile.m;
    return {tile, first_batch_ + matrix, number, part, tiles_.steps_of(part, splits_, place_)};
  }

  // Returns true in the team that continues with the tile's total in `sums`: all of it, or with cluster_k a
  // slice.
  template <class Sums, class Team>
  COSMATI_DEVICE bool combine(Sums& sums, ScheduleArguments const& schedule, TileOfWork const& work,
                              Team const& team) const {
    if constexpr (!Tiles::adds_parts) return true;
    return combine_parts(sums, schedule, Index{work.number} * policy.cluster_k + place_.k, work.part, team);
  }

 private:
  Tiles tiles_;
  int splits_;
  ClusterPlace place_;
  Index first_batch_;
  int index_, last_;
};

}  // namespace cosmati
