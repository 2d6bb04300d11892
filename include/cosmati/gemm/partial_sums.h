// Sums of a part of k that one block leaves in the workspace for another, which adds them to its own: each
// slot has one writer and one reader a launch. Who reads waits for a flag that holds the launch's tag and
// puts zero in its place, so the flags need no fill: whatever the workspace held before, it held no tag that
// is new, and after the launch, which may be a graph's and come again with the same tag, none is left.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/vector.h"
#include "cosmati/gemm/arguments.h"

namespace cosmati {

// The threads that share a tile: all of a block.
template <int threads_>
struct BlockTeam {
  static constexpr int threads = threads_;
  COSMATI_DEVICE static int thread() { return arch::thread(); }
  COSMATI_DEVICE void barrier() const { arch::block_barrier(); }
};

template <class Product, class Team>
struct PartialSums {
  using Register = typename Product::Register;
  static constexpr int width = 16 / static_cast<int>(sizeof(Register));
  using Run = Vector<Register, width>;
  static constexpr int runs = Product::registers / width;
  static_assert(Product::registers % width == 0, "a thread's sums are stored 16 bytes at a time");
  // Of a slot in ScheduleArguments::partials.
  static constexpr int bytes = Product::registers * static_cast<int>(sizeof(Register)) * Team::threads;

  COSMATI_DEVICE static void publish(Product& sums, ScheduleArguments const& schedule, Index slot,
                                     Team const& team) {
    store(sums, schedule, slot, team);
    team.barrier();
    // What all threads wrote, and the barrier has brought to this one, is released with the flag.
    if (team.thread() == 0) arch::raise_flag(&schedule.flags[slot], schedule.tag);
  }

  // sums += those of slots [first, first + count), in this order.
  COSMATI_DEVICE static void add(Product& sums, ScheduleArguments const& schedule, Index first, int count,
                                 Team const& team) {
    for (int slot = team.thread(); slot < count; slot += Team::threads)
      arch::take_flag(&schedule.flags[first + slot], schedule.tag);
    team.barrier();
    load(sums, schedule, first, count, team);
  }

  COSMATI_DEVICE static void store(Product& sums, ScheduleArguments const& schedule, Index slot,
                                   Team const& team) {
    Run* to = place(schedule, slot, team);
    Run run;
    int filled = 0;
    sums.for_each([&](Register const& value) {
      run[filled] = value;
      if (++filled < width) return;
      arch::store_global(to, run);
      to += Team::threads;
      filled = 0;
    });
  }

  COSMATI_DEVICE static void load(Product& sums, ScheduleArguments const& schedule, Index first, int count,
                                  Team const& team) {
    COSMATI_NO_UNROLL
    for (int slot = 0; slot < count; ++slot) {
      Run const* from = place(schedule, first + slot, team);
      Run run;
      int used = width;
      sums.for_each([&](Register& value) {
        if (used == width) {
          run = arch::load<Run>(from);
          from += Team::threads;
          used = 0;
        }
        Product::add(value, run[used++]);
      });
    }
  }

 private:
  // (slot, run, thread): neighbouring threads access neighbouring runs
  COSMATI_DEVICE static Run* place(ScheduleArguments const& schedule, Index slot, Team const& team) {
    return arch::as_global(static_cast<Run*>(schedule.partials)) + slot * (runs * Team::threads) +
           team.thread();
  }
};

}  // namespace cosmati
