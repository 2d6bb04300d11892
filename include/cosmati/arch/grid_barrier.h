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
COSMATI_DEVICE void grid_barrier(unsigned* counter) { wait_for_grid(counter, arrive_at_grid(counter)); }

}  // namespace cosmati::arch
