// Shared-memory kernels with and without races. Those named clean_ must not be reported; those named planted_
// must be, with the lines marked "one side" and "other side".
#include <atomic>
#include <vector>

#include "cosmati/arch/config.h"
#include "cosmati/arch/emulator.h"
#include "tests/race/race.h"

namespace cosmati {
namespace {

constexpr int threads = 64, blocks = 4;

struct Params {
  int* out;
  bool barrier;
  std::atomic<int>* flag = nullptr;
};

int* shared() { return reinterpret_cast<int*>(emulator::shared_memory()); }

template <auto kernel>
void run(bool barrier) {
  std::vector<int> out(blocks * threads);
  std::atomic<int> flag = 0;
  emulator::launch_kernel<kernel>({blocks}, threads, 4 * threads * sizeof(int),
                                  Params{out.data(), barrier, &flag}, 2);
}

void store(int* out, int value) { out[emulator::block().x * threads + emulator::thread()] = value; }

template <class P>
COSMATI_KERNEL(threads, 1)
exchange(COSMATI_PARAMETER P params) {
  int const self = emulator::thread();
  for (int round = 0; round < 3; ++round) {
    shared()[self] = round;  // exchange: one side
    if (params.barrier) emulator::block_barrier();
    store(params.out, shared()[threads - 1 - self]);  // exchange: other side
    emulator::block_barrier();
  }
}

// With two buffers one barrier per step suffices; a single buffer would need two.
template <class P>
COSMATI_KERNEL(threads, 1)
alternate(COSMATI_PARAMETER P params) {
  int const self = emulator::thread();
  int const buffers = params.barrier ? 2 : 1;
  for (int step = 0; step < 4; ++step) {
    int* const buffer = shared() + step % buffers * threads;
    buffer[self] = step;  // alternate: one side
    emulator::block_barrier();
    store(params.out, buffer[(self + 1) % threads]);  // alternate: other side
  }
}

// Lanes exchange values through shared memory; a warp collective orders them, but not the two warps.
template <class P>
COSMATI_KERNEL(threads, 1)
exchange_in_warp(COSMATI_PARAMETER P params) {
  int const self = emulator::thread();
  shared()[self] = self;  // exchange_in_warp: one side
  emulator::warp_collective("syncwarp", ~0U, nullptr, nullptr);
  store(params.out, shared()[params.barrier ? self ^ 1 : self ^ 32]);  // exchange_in_warp: other side
}

// The wait makes a thread's own copies visible only to itself; others also need the barrier.
template <class P>
COSMATI_KERNEL(threads, 1)
copy(COSMATI_PARAMETER P params) {
  static int source[threads] = {};
  int const self = emulator::thread();
  emulator::copy_async(shared() + self, source + self, 4, 4);  // copy: one side
  emulator::commit_copies();
  emulator::wait_copies(0);
  if (params.barrier) emulator::block_barrier();
  store(params.out, shared()[self ^ 7]);  // copy: other side
}

// Blocks pass on a sum with a flag, from the last to the first: with release and acquire, or relaxed.
template <class P>
COSMATI_KERNEL(threads, 1)
hand_on(COSMATI_PARAMETER P params) {
  if (emulator::thread() != 0) return;
  struct Turn {
    std::atomic<int>* flag;
    int before;
    std::memory_order order;
  } turn{params.flag, blocks - 1 - emulator::block().x,
         params.barrier ? std::memory_order_acquire : std::memory_order_relaxed};
  emulator::wait(
      "its turn",
      [](void* context) {
        Turn const& mine = *static_cast<Turn*>(context);
        return mine.flag->load(mine.order) == mine.before;
      },
      &turn);
  params.out[0] += 1;  // hand_on: one side, other side
  params.flag->store(turn.before + 1, params.barrier ? std::memory_order_release : std::memory_order_relaxed);
}

race::Registered const registered[] = {
    {"clean_exchange", [] { run<exchange<Params>>(true); }},
    {"planted_exchange", [] { run<exchange<Params>>(false); }},
    {"clean_alternate", [] { run<alternate<Params>>(true); }},
    {"planted_alternate", [] { run<alternate<Params>>(false); }},
    {"clean_exchange_in_warp", [] { run<exchange_in_warp<Params>>(true); }},
    {"planted_exchange_in_warp", [] { run<exchange_in_warp<Params>>(false); }},
    {"clean_copy", [] { run<copy<Params>>(true); }},
    {"planted_copy", [] { run<copy<Params>>(false); }},
    {"clean_hand_on", [] { run<hand_on<Params>>(true); }},
    {"planted_hand_on", [] { run<hand_on<Params>>(false); }},
};

}  // namespace
}  // namespace cosmati
