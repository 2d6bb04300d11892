// The emulator interface that arch/ calls without a GPU: a thread block is a set of cooperating fibers on one
// host thread. Every function except launch() may be called only by emulated threads. Host only; implemented
// in libcosmati. Memory model: asynchronous operations take effect at the latest moment that the GPU's rules
// allow, and their destination is poisoned (0xff bytes, NaN in every float type) until then. Shared memory is
// 1024-byte aligned, arrives poisoned and is fenced by guard bytes. To ThreadSanitizer each emulated thread
// is a thread.
#pragma once
#include "cosmati/core/cxx20.h"

#if !defined(__CUDACC__)

namespace cosmati::emulator {

struct Grid {
  int x = 1, y = 1, z = 1;
};

// Properties of the running thread.
int thread();  // its index in the block
int block_threads();
Grid block();  // the position of its block in the grid
Grid grid();
unsigned char* shared_memory();  // dynamic shared memory of its block

// __syncthreads(): reports an error if a thread of the block has exited or is blocked elsewhere.
void block_barrier();

// block_barrier() that returns true to all threads if `mine` is true for any of them: __syncthreads_or().
bool block_any(bool mine);

// A rendezvous of the lanes in `mask` (bit i: lane i) of the running thread's warp at the collective `name`:
// the last lane to arrive calls compute(lanes, context), where lanes[i] is the `lane` argument of lane i,
// null outside the mask; then all continue. If lanes arrive with another name or mask, or never, the error
// names them.
void warp_collective(char const* name, unsigned mask, void* lane,
                     void (*compute)(void* const* lanes, void* context), void* context = nullptr);

// Lets other threads of the block, and other blocks of the launch, run until ready(context) is true. `what`
// appears in the report of a deadlock.
void wait(char const* what, bool (*ready)(void* context), void* context);
// Like wait(), but for an action of another launch that runs at the same time, for at most a minute;
// meanwhile, the launch does not count as deadlocked.
void wait_for_launch(char const* what, bool (*ready)(void* context), void* context);

// cp.async: copies `valid` bytes and writes zeros up to `bytes` (4, 8 or 16; both addresses are multiples of
// it). The destination is poisoned until wait_copies().
void copy_async(void* shared, void const* global, int bytes, int valid);
void commit_copies();  // closes a group of the calling thread
// Waits until all but the latest `in_flight` groups of the calling thread are complete.
void wait_copies(int in_flight);

// Checks that `address` is a multiple of `bytes` and, if it is in shared memory, that the range is inside the
// part that the launch requested.
void check_access(void const* address, int bytes);

// Runs body(params) for every thread of `grid` blocks of `threads` (1 to 1024) threads, on `host_threads`
// host threads (0: one per core). Blocks may wait for each other in any order. Throws Error(wrong_result)
// with thread coordinates for divergence, deadlock, damaged guard bytes or a misaligned access. An exception
// that leaves the kernel is rethrown nested in an Error with its text and coordinates. First, all threads are
// unwound by an internal exception of the emulator: functions called by a kernel that may block must not be
// noexcept and must not catch (...). Destructors run; a collective or wait in a destructor then does nothing.
void launch(Grid grid, int threads, unsigned shared_bytes, void (*body)(void const* params),
            void const* params, int host_threads = 0);

// launch_kernel<kernel>(grid, threads, shared_bytes, params) for a kernel declared by COSMATI_KERNEL.
template <auto kernel, class Params>
void launch_kernel(Grid grid, int threads, unsigned shared_bytes, Params const& params,
                   int host_threads = 0) {
  launch(
      grid, threads, shared_bytes, [](void const* bytes) { kernel(*static_cast<Params const*>(bytes)); },
      &params, host_threads);
}

}  // namespace cosmati::emulator

#endif
