// Partial sums over a part of k that one block stores in the workspace and another adds to its own: each slot
// has one writer and one reader per launch. The reader waits until the flag equals the launch's tag and
// resets it to zero, so flags need no initialization: an arbitrary workspace does not contain a fresh tag,
// and none remains after the launch, which a graph may repeat with the same tag.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/vector.h"
#include "cosmati/gemm/arguments.h"

namespace cosmati {

// The threads that share a tile: all threads of a block.
template <int threads_>
struct BlockTeam {
  static constexpr int threads = threads_;
  COSMATI_DEVICE static int thread() { return arch::thread(); }
  COSMATI_DEVICE void barrier() const { arch::block_barrier(); }
};

template <class Product, class Team>
struct PartialSums {
  using Register = typename Product::Register;
  static constexpr int full_width = 16 / static_cast<int>(sizeof(Register));
  // A slice of few f16 sums has only two registers, a thread of gemv often one.
  static constexpr int width = Product::registers % full_width == 0 ? full_width
                               : Product::registers % 2 == 0        ? 2
                                                                    : 1;
  using Run = Vector<Register, width>;
  static constexpr int runs = Product::registers / width;
  static_assert(Product::registers % width == 0,
                "a thread's sums are stored by vectors of 16 bytes, or by one or two");
  // The size of a slot in ScheduleArguments::partials.
  static constexpr int bytes = Product::registers * static_cast<int>(sizeof(Register)) * Team::threads;

  COSMATI_DEVICE static void publish(Product& sums, ScheduleArguments const& schedule, Index slot,
                                     Team const& team) {
    store(sums, schedule, slot, team);
    team.barrier();
    // The barrier made all threads' writes visible to this thread, which releases them with the flag.
    if (team.thread() == 0) arch::raise_flag(&schedule.flags[slot], schedule.tag);
  }

  // Adds the sums of slots [first, first + count) to `sums`, in this order.
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
    int slot = 0;
    // The loads of a thread with a single run would wait for each other.
    if constexpr (runs == 1) slot = load_together(sums, schedule, first, count, team);
    COSMATI_NO_UNROLL
    for (; slot < count; ++slot) {
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
  // Adds the same, several slots at a time; returns how many it added.
  COSMATI_DEVICE static int load_together(Product& sums, ScheduleArguments const& schedule, Index first,
                                          int count, Team const& team) {
    constexpr int together = 8;
    int slot = 0;
    COSMATI_NO_UNROLL
    for (; slot + together <= count; slot += together) {
      Run run[together];
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) run[i] = arch::load<Run>(place(schedule, first + slot + i, team));
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int used = 0;
        sums.for_each([&](Register& value) { Product::add(value, run[i][used++]); });
      }
    }
    return slot;
  }

  // (slot, run, thread): adjacent threads access adjacent runs
  COSMATI_DEVICE static Run* place(ScheduleArguments const& schedule, Index slot, Team const& team) {
    return arch::as_global(static_cast<Run*>(schedule.partials)) + slot * (runs * Team::threads) +
           team.thread();
  }
};

}  // namespace cosmati
