// Several blocks share a tile of D, each a part of k. All write their sums to the workspace; the block that
// arrives last adds them up in the order of the parts, whoever it is, so that the result has the same bits in
// every run.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/arguments.h"

namespace cosmati {

// Bytes that one tile and part need in ScheduleArguments::partials.
template <class Product>
inline constexpr int partial_bytes_per_thread =
    Product::registers* static_cast<int>(sizeof(typename Product::Register));

// The threads that share a tile: all of a block.
template <int threads_>
struct BlockTeam {
  static constexpr int threads = threads_;
  COSMATI_DEVICE static int thread() { return arch::thread(); }
  COSMATI_DEVICE void barrier() const { arch::block_barrier(); }
  COSMATI_DEVICE bool any(bool mine) const { return arch::block_any(mine); }
};

// True in the team that goes on with the whole sum in `sums`. `tile` numbers the tiles of all batches.
template <class Product, class Team>
COSMATI_DEVICE bool combine_parts(Product& sums, ScheduleArguments const& schedule, Index tile, int part,
                                  Team const& team) {
  using Register = typename Product::Register;
  constexpr int threads = Team::threads;
  int const parts = schedule.splits;
  if (parts <= 1) return true;
  // (tile, part, register, thread): neighbouring threads write neighbouring words
  Register* const mine = static_cast<Register*>(schedule.partials) +
                         tile * parts * (Product::registers * threads) + team.thread();
  Register* to = mine + Index{part} * (Product::registers * threads);
  sums.for_each([&](Register const& value) {
    *to = value;
    to += threads;
  });
  arch::global_fence();
  team.barrier();
  // What all threads wrote, and the barrier has brought to this one, is released with the counter.
  if (team.thread() == 0) arch::global_fence();
  bool const last = team.any(team.thread() == 0 && arch::atomic_increment(&schedule.counters[tile]) ==
                                                       static_cast<unsigned>(parts - 1));
  if (!last) return false;
  arch::global_fence();
  Register const* from = mine;
  sums.for_each([&](Register& value) {
    value = *from;
    from += threads;
  });
  COSMATI_NO_UNROLL
  for (int other = 1; other < parts; ++other)
    sums.for_each([&](Register& value) {
      Product::add(value, *from);
      from += threads;
    });
  return true;
}
template <class Product, int threads>
COSMATI_DEVICE bool combine_parts(Product& sums, ScheduleArguments const& schedule, Index tile, int part) {
  return combine_parts(sums, schedule, tile, part, BlockTeam<threads>{});
}

}  // namespace cosmati
