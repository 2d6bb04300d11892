// Grouped products: problems of different sizes in one launch. Tiles are numbered consecutively across
// problems, and a block finds the problem of its tile by binary search.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/gemm/group_arguments.h"
#include "cosmati/gemm/kernel.h"
#include "cosmati/gemm/persistent.h"

namespace cosmati {

// Returns the problem that contains `tile`, searching from `low`.
COSMATI_DEVICE int problem_of_tile(GroupArguments const& group, int tile, int low = 0) {
  int high = group.count;  // first_tile[low] <= tile < first_tile[high]
  while (high - low > 1) {
    int const middle = low + (high - low) / 2;
    if (arch::load_constant<int>(group.first_tile + middle) <= tile)
      low = middle;
    else
      high = middle;
  }
  return low;
}

template <class Traits>
COSMATI_DEVICE typename Traits::Params const& problem_of(GroupArguments const& group, int number) {
  return arch::as_global(static_cast<typename Traits::Params const*>(group.problems))[number];
}

// Like gemm_kernel, and built from the same parts. It is separate because reading parameters from memory
// costs instructions in the loops. Grid: tiles of all problems; no split-K.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::policy.blocks)
grouped_gemm_kernel(COSMATI_PARAMETER GroupArguments group) {
  constexpr GemmPolicy policy = Traits::policy;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();

  int const number = problem_of_tile(group, arch::block_x());
  typename Traits::Params const& params = problem_of<Traits>(group, number);
  int const tiles_m = static_cast<int>(ceiling_divide(params.m, policy.block_m));
  int const tiles_n = static_cast<int>(ceiling_divide(params.n, policy.block_n));
  int const steps = static_cast<int>(ceiling_divide(params.k, policy.block_k));
  TileIndex const tile = raster_tile(policy.raster, policy.raster_width, tiles_m, tiles_n,
                                     arch::block_x() - arch::load_constant<int>(group.first_tile + number));
  typename Traits::Product sums;  // (thread_m, thread_n)
  multiply_tile<Traits>(sums, shared, params, tile, 0, {0, steps});
  store_tile<Traits>(sums, shared, params, tile, 0);
}

// The tiles of a block in warp_specialized_kernel: like TileScheduler, over the tiles of all problems.
template <class Traits>
class GroupScheduler {
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr int cluster = policy.cluster();

 public:
  using Launch = GroupArguments;

  COSMATI_DEVICE GroupScheduler(Launch const& launch, ClusterPlace place)
      : group_(launch),
        place_(place),
        index_(arch::block_x() / cluster),
        last_(arch::load_constant<int>(launch.first_tile + launch.count)) {
    find();
  }
  COSMATI_DEVICE static void prefetch(Launch const&) {}  // their maps may not have been written yet

  COSMATI_DEVICE typename Traits::Params const& problem() const {
    return problem_of<Traits>(group_, number_);
  }
  COSMATI_DEVICE bool more() const { return index_ < last_; }
  COSMATI_DEVICE bool is_last() const { return index_ + arch::grid_x() / cluster >= last_; }
  COSMATI_DEVICE void advance() {
    index_ += arch::grid_x() / cluster;
    find();
  }
  COSMATI_DEVICE StepRange steps() const {
    return {place_.k, static_cast<int>(ceiling_divide(problem().k, policy.block_k))};
  }
  COSMATI_DEVICE TileOfWork work() const {
    TileIndex const tile =
        ClusterTiles<policy>(problem().m, problem().n, problem().k).tile(index_ - first_, place_);
    return {tile, 0, 0, 0, steps()};
  }
  template <class Sums, class Team>
  COSMATI_DEVICE bool combine(Sums&, ScheduleArguments const&, TileOfWork const&, Team const&) const {
    return true;  // split-K is not supported
  }

 private:
  COSMATI_DEVICE void find() {
    if (!more() || index_ < end_) return;
    number_ = problem_of_tile(group_, index_, number_);
    first_ = arch::load_constant<int>(group_.first_tile + number_);
    end_ = arch::load_constant<int>(group_.first_tile + number_ + 1);
  }

  GroupArguments const& group_;
  ClusterPlace place_;
  int index_, last_, number_ = 0, first_ = 0, end_ = 0;
};

}  // namespace cosmati
