// A barrier of all blocks of a grid, which must all be resident at the same time.
#pragma once
#include "cosmati/arch/thread.h"

namespace cosmati::arch {

// Each block adds 1, except block 0, which adds the remainder up to 2^31; the counter's top bit therefore
// flips when the last block arrives. The counter is zero before the first barrier of the first launch, and is
// never reset.
COSMATI_DEVICE unsigned grid_arrival() {
  return block_x() == 0 ? 0x80000000u - static_cast<unsigned>(grid_x() - 1) : 1u;
}

// Writes of all threads of the grid before their arrival are visible to all of them after the wait: the
// barriers of the block order the accesses of its threads with those of thread 0, which releases and
// acquires. In thread 0, arrive_at_grid() returns the value that wait_for_grid() needs. Work between the two
// calls is not ordered.
#if defined(__CUDACC__)
COSMATI_DEVICE unsigned arrive_at_grid(unsigned* counter) {
  block_barrier();
  unsigned before = 0;
  if (thread() == 0)
    asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(grid_arrival())
                 : "memory");
  return before;
}
COSMATI_DEVICE void wait_for_grid(unsigned* counter, unsigned before) {
  if (thread() == 0) {
    unsigned now;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    } while (((before ^ now) & 0x80000000u) == 0);
  }
  block_barrier();
}
#else
COSMATI_DEVICE unsigned arrive_at_grid(unsigned* counter) {
  block_barrier();
  return thread() == 0 ? __atomic_fetch_add(counter, grid_arrival(), __ATOMIC_RELEASE) : 0;
}
COSMATI_DEVICE void wait_for_grid(unsigned* counter, unsigned before) {
  if (thread() == 0) {
    struct Awaited {
      unsigned* counter;
      unsigned before;
    } awaited{counter, before};
    emulator::wait(
        "the grid barrier",
        [](void* context) {
          Awaited const& it = *static_cast<Awaited*>(context);
          return ((it.before ^ __atomic_load_n(it.counter, __ATOMIC_ACQUIRE)) & 0x80000000u) != 0;
        },
        &awaited);
  }
  block_barrier();
}
#endif
// A barrier of the grids of several devices, which run at the same time and can access each other's memory.
// Every block adds 1 to the counter of each member; a member waits until its own has reached `target`. Writes
// before the arrival of any block are visible after the wait. If a member stays away for a minute, its device
// has failed: the kernel ends with an error.
#if defined(__CUDACC__)
COSMATI_DEVICE void arrive_at_team(unsigned* const* counters, int members) {
  block_barrier();
  if (thread() < members)
    asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(counters[thread()]) : "memory");
}
COSMATI_DEVICE unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
COSMATI_DEVICE void wait_for_team(unsigned const* counter, unsigned target) {
  if (thread() == 0) {
    constexpr unsigned long long patience = 60'000'000'000;
    unsigned now;
    unsigned long long const start = nanoseconds();
    for (int poll = 1;; ++poll) {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
      if (static_cast<int>(now - target) >= 0) break;
      if (poll % 1024 == 0 && nanoseconds() - start > patience) asm volatile("trap;");
    }
  }
  block_barrier();
}
#else
COSMATI_DEVICE void arrive_at_team(unsigned* const* counters, int members) {
  block_barrier();
  if (thread() < members) __atomic_fetch_add(counters[thread()], 1u, __ATOMIC_RELEASE);
}
COSMATI_DEVICE void wait_for_team(unsigned const* counter, unsigned target) {
  if (thread() == 0) {
    struct Awaited {
      unsigned const* counter;
      unsigned target;
    } awaited{counter, target};
    emulator::wait_for_launch(
        "the barrier of all devices",
        [](void* context) {
          Awaited const& it = *static_cast<Awaited*>(context);
          return static_cast<int>(__atomic_load_n(it.counter, __ATOMIC_ACQUIRE) - it.target) >= 0;
        },
        &awaited);
  }
  block_barrier();
}
#endif
COSMATI_DEVICE void grid_barrier(unsigned* counter) { wait_for_grid(counter, arrive_at_grid(counter)); }

}  // namespace cosmati::arch
