// PTX ISA, "bar": the named barriers of a block.
#include <fmt/format.h>

#include "src/backend/emulator/machine/block.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

std::string tell_barrier(Thread const& thread) {
  NamedBarrier const& barrier = thread.block.async()->named[thread.waits_for];
  return fmt::format("named barrier {}, where {} of {} threads have arrived", thread.waits_for,
                     barrier.arrived, barrier.threads);
}

}  // namespace

void named_barrier(int id, int threads, bool waits) {
  Thread& thread = running_thread();
  Block& block = thread.block;
  if (!block.can_wait()) return;
  if (id < 1 || id > 15 || threads < warp_size || threads % warp_size != 0 || threads > block.work().threads)
    return block.fail(thread,
                      fmt::format("named barrier {} of {} threads; valid values: 1 to 15, and multiples of "
                                  "32 up to the {} of the block",
                                  id, threads, block.work().threads));
  NamedBarrier& barrier = block.start_async().named[id];
  if (barrier.arrived == 0) barrier.threads = threads;
  if (barrier.threads != threads)
    return block.fail(thread,
                      fmt::format("arrives at named barrier {} for {} threads, where others wait for {}", id,
                                  threads, barrier.threads));
  std::int64_t const round = barrier.round;
  sanitizers::release(&barrier.sync[round % 2]);
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.round;
  }
  if (!waits) return;
  struct Context {
    NamedBarrier const& barrier;
    std::int64_t round;
  } context{barrier, round};
  thread.tell = tell_barrier;
  thread.waits_for = id;
  block.poll(
      thread, "a named barrier",
      [](void* pointer) {
        Context const& it = *static_cast<Context*>(pointer);
        return it.barrier.round != it.round;
      },
      &context);
  thread.tell = nullptr;
  sanitizers::acquire(&barrier.sync[round % 2]);
}

}  // namespace cosmati::emulator
