// Stream-K: the k steps of some tiles are concatenated and divided into equal ranges, one per cluster, so
// that all finish together for any number of tiles. The remaining tiles are computed afterwards, undivided.
// (Osama, Merrill, Cecka, Garland, Owens: Stream-K, 2023; two-tile hybrid in section 5.)
//
// A range is processed backwards: first the head of its last tile, whose sums are published for the cluster
// with the tile's later steps; then complete tiles; last the tail of its first tile, for which this cluster
// waits for earlier ones. Clusters thus wait only for earlier clusters in the grid and, if ranges are longer
// than a tile, for sums published long before; each block needs one slot of partial sums.
#pragma once
#include "cosmati/gemm/partial_sums.h"
#include "cosmati/gemm/persistent.h"

namespace cosmati {

// Like TileScheduler, with pieces of tiles.
template <GemmPolicy policy>
class StreamScheduler {
  static constexpr int cluster = policy.cluster();

 public:
  COSMATI_DEVICE StreamScheduler(Index m, Index n, Index k, ScheduleArguments const& schedule,
                                 ClusterPlace place)
      : tiles_(m, n, k),
        place_(place),
        first_batch_(schedule.first_batch),
        last_(static_cast<int>(schedule.batch) * tiles_.count()) {
    int const streamed = tiles_.steps > 0 ? schedule.streamed : 0;
    line_ = streamed * tiles_.steps;
    range_ = part_of_steps(line_, own(), clusters());
    index_ = streamed + own();
  }

  COSMATI_DEVICE bool more() const { return is_streaming() || index_ < last_; }
  COSMATI_DEVICE bool is_last() const {
    if (is_streaming()) return range_.last - range_.first <= length(steps()) && index_ >= last_;
    return index_ + clusters() >= last_;
  }
  COSMATI_DEVICE void advance() {
    if (is_streaming())
      range_.last -= length(steps());
    else
      index_ += clusters();
  }

  COSMATI_DEVICE StepRange steps() const {
    return is_streaming() ? last_piece(range_, tiles_.steps).steps : StepRange{0, tiles_.steps};
  }

  COSMATI_DEVICE TileOfWork work() const {
    int const tiles = tiles_.count();
    int const number = is_streaming() ? last_piece(range_, tiles_.steps).tile : index_;
    int const matrix = last_ == tiles ? 0 : number / tiles;
    return {tiles_.tile(number - matrix * tiles, place_), first_batch_ + matrix, number, 0, steps()};
  }

  // Returns true in the team that continues with the tile's total in `sums`.
  template <class Product, class Team>
  COSMATI_DEVICE bool combine(Product& sums, ScheduleArguments const& schedule, TileOfWork const& work,
                              Team const& team) const {
    using Partial = PartialSums<Product, Team>;
    if (!is_streaming()) return true;
    Index const slots =
        Index{place_.n * policy.cluster_m + place_.m} * clusters();  // (block of cluster, cluster)
    if (work.steps.last < tiles_.steps) {
      Partial::publish(sums, schedule, slots + own(), team);
      return false;
    }
    if (work.steps.first > 0) {
      int const from = part_with_step(line_, clusters(), work.number * tiles_.steps);
      Partial::add(sums, schedule, slots + from, own() - from, team);
    }
    return true;
  }

 private:
  COSMATI_DEVICE static int clusters() { return arch::grid_x() / cluster; }
  COSMATI_DEVICE static int own() { return arch::block_x() / cluster; }
  COSMATI_DEVICE static int length(StepRange steps) { return steps.last - steps.first; }
  COSMATI_DEVICE bool is_streaming() const { return range_.first < range_.last; }

  ClusterTiles<policy> tiles_;
  ClusterPlace place_;
  Index first_batch_;
  int last_;         // end of the tiles of all matrices; the following members concern streamed tiles
  int line_;         // steps of all streamed tiles
  StepRange range_;  // the remaining part of this cluster's range
  int index_;        // the next undivided tile
};

template <GemmPolicy policy, Partition partition = policy.partition>
struct SchedulerOf {
  using type = TileScheduler<policy>;
};
template <GemmPolicy policy>
struct SchedulerOf<policy, Partition::stream_k> {
  using type = StreamScheduler<policy>;
};

// The tile scheduler of a launch with a single problem.
template <class Traits>
struct ProblemScheduler : SchedulerOf<Traits::policy, Traits::policy.partition>::type {
  using Scheduler = typename SchedulerOf<Traits::policy, Traits::policy.partition>::type;
  using Launch = typename Traits::Params;
  COSMATI_DEVICE ProblemScheduler(Launch const& launch, ClusterPlace place)
      : Scheduler(launch.m, launch.n, launch.k, launch.schedule, place), problem_(launch) {}
  COSMATI_DEVICE Launch const& problem() const { return problem_; }
  COSMATI_DEVICE static void prefetch(Launch const& launch) {
    // Absent if threads load the operand.
    if constexpr (requires { launch.a.prefetch(); }) launch.a.prefetch();
    if constexpr (requires { launch.b.prefetch(); }) launch.b.prefetch();
  }

 private:
  Launch const& problem_;
};

}  // namespace cosmati
