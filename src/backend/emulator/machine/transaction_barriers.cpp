// PTX ISA, "mbarrier": a phase ends when all arrivals and all expected bytes have arrived. Copies in flight
// complete only when a thread would otherwise wait.
#include <fmt/format.h>

#include <algorithm>

#include "src/backend/emulator/machine/cluster.h"
#include "src/backend/emulator/machine/report.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

constexpr unsigned long long alive = 0x6d62'6172'7269'6572;  // value of a barrier's bytes in the emulator
constexpr int max_arrivals = (1 << 20) - 1, max_bytes = max_arrivals;

std::string tell_phase(Thread const& thread) {
  Async const& async = *thread.block.async();
  TransactionBarrier const& barrier = async.barriers[static_cast<std::size_t>(thread.waits_for)];
  return fmt::format("parity {} of the barrier at byte {}, whose phase {} is missing {}", thread.detail,
                     barrier.offset, barrier.phase, async.missing(barrier));
}

}  // namespace

TransactionBarrier* find_barrier(Thread& thread, void const* address, Block& block, char const* what) {
  SharedMemory const& memory = thread.block.shared_memory();
  auto const fail = [&](std::string const& why) {
    thread.block.fail(thread,
                      fmt::format("{} at byte {} of shared memory, {}", what, memory.offset(address), why));
    return nullptr;
  };
  if (!memory.holds(address, 8) || memory.offset(address) % 8 != 0)
    return fail(fmt::format("which is not a multiple of 8 inside its {} bytes", memory.size()));
  if (block.is_finished()) return fail(fmt::format("whose {} has left the kernel", describe(block)));
  Async* const async = block.async();
  int const index = async == nullptr ? -1 : async->find(memory.offset(address));
  if (index < 0) return fail("where init() has not created a barrier");
  TransactionBarrier& barrier = async->barriers[static_cast<std::size_t>(index)];
  unsigned long long bits;
  __builtin_memcpy(&bits, block.shared_memory().data() + barrier.offset, sizeof bits);
  if (bits != alive) return fail("where something has overwritten the barrier");
  if (&block != &thread.block && !barrier.published)
    return fail("which is another block's, and was not published after init()");
  return &barrier;
}

int Async::find(std::ptrdiff_t offset) const {
  for (std::size_t i = 0; i < barriers.size(); ++i)
    if (barriers[i].offset == offset) return static_cast<int>(i);
  return -1;
}

void Async::complete(TransactionBarrier& barrier, void const* caller) {
  if (barrier.missing != barrier.after_copies || barrier.bytes != barrier.in_flight) return;
  int const self = static_cast<int>(&barrier - barriers.data());
  sanitizers::acquire(&barrier.sync[barrier.phase % 2]);
  if (barrier.after_copies > 0) {
    block_.cluster().attribute_writes(*running);
    for (ArrivalAfterCopies const& arrival : arrivals)
      if (arrival.barrier == self) arrival.thread->copies.land_first(arrival.copies, caller);
    writes.attribute(OrdinaryWrites::copies);
    std::erase_if(arrivals, [&](ArrivalAfterCopies const& arrival) { return arrival.barrier == self; });
  }
  if (barrier.in_flight > 0) {
    for (TileLoad const& load : loads)
      if (load.barrier == self) land(load, caller);
    std::erase_if(loads, [&](TileLoad const& load) { return load.barrier == self; });
  }
  barrier.bytes = barrier.in_flight = 0;
  barrier.after_copies = 0;
  barrier.missing = barrier.arrivals;
  sanitizers::release(&barrier.sync[barrier.phase % 2]);
  ++barrier.phase;
}

std::string Async::missing(TransactionBarrier const& barrier) const {
  std::int64_t const bytes = barrier.bytes - barrier.in_flight;
  int const arrivals_left = barrier.missing - barrier.after_copies;
  std::string text;
  if (arrivals_left > 0) text = fmt::format("{} of {} arrivals", arrivals_left, barrier.arrivals);
  if (bytes > 0) text += fmt::format("{}{} bytes that no copy delivers", text.empty() ? "" : " and ", bytes);
  if (bytes < 0)
    text += fmt::format("{}an arrive_expecting() for {} bytes that copies deliver",
                        text.empty() ? "" : " and ", -bytes);
  return text.empty() ? "nothing" : text;
}

void init_barrier(void* address, int arrivals) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  SharedMemory const& memory = thread.block.shared_memory();
  std::ptrdiff_t const offset = memory.offset(address);
  auto const fail = [&](std::string const& why) {
    thread.block.fail(thread,
                      fmt::format("init() of a barrier at byte {} of shared memory, {}", offset, why));
  };
  if (!memory.holds(address, 8) || offset % 8 != 0)
    return fail(fmt::format("which is not a multiple of 8 inside its {} bytes", memory.size()));
  if (arrivals < 1 || arrivals > max_arrivals)
    return fail(fmt::format("for {} arrivals; valid values: 1 to {}", arrivals, max_arrivals));
  Async& async = thread.block.start_async();
  if (async.find(offset) >= 0) return fail("where one already exists");
  TransactionBarrier barrier{};
  barrier.offset = offset;
  barrier.arrivals = barrier.missing = arrivals;
  barrier.maker = thread.index;
  async.barriers.push_back(barrier);
  __builtin_memcpy(address, &alive, sizeof alive);
}

void publish_barriers() {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  for (TransactionBarrier& barrier : thread.block.start_async().barriers)
    barrier.published |= barrier.maker == thread.index;
}

void arrive_at_barrier(void* address, int rank, int bytes) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  Cluster& cluster = thread.block.cluster();
  if (rank >= cluster.size())
    return thread.block.fail(
        thread, fmt::format("arrives at a barrier of block {} of a cluster of {}", rank, cluster.size()));
  Block& block = rank < 0 ? thread.block : cluster.block(rank);
  TransactionBarrier* const barrier = find_barrier(thread, address, block, "arrives at a barrier");
  if (barrier == nullptr) return;
  Async& async = *block.async();
  async.complete(*barrier, __builtin_return_address(0));
  if (barrier->missing == barrier->after_copies)
    return thread.block.fail(
        thread,
        fmt::format("arrives at the barrier at byte {} of shared memory, though all {} arrivals of its "
                    "phase {} have been made; it is missing {}",
                    barrier->offset, barrier->arrivals, barrier->phase, async.missing(*barrier)));
  if (bytes < 0 || barrier->bytes + bytes > max_bytes)
    return thread.block.fail(
        thread,
        fmt::format(
            "expects {} bytes at the barrier at byte {} of shared memory; a phase supports at most {}",
            barrier->bytes + bytes, barrier->offset, max_bytes));
  sanitizers::release(&barrier->sync[barrier->phase % 2]);
  barrier->bytes += bytes;
  --barrier->missing;
  if (barrier->in_flight == 0 && barrier->after_copies == 0)
    async.complete(*barrier, __builtin_return_address(0));
}

void send_to_block(void* shared, void const* value, int bytes, void* address, int rank) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  void* const to = in_block(shared, rank);
  if (!thread.block.can_wait()) return;
  Block& block = thread.block.cluster().block(rank);
  TransactionBarrier* const barrier = find_barrier(thread, address, block, "sends to a barrier");
  if (barrier == nullptr) return;
  __builtin_memcpy(to, value, static_cast<std::size_t>(bytes));
  sanitizers::release(&barrier->sync[barrier->phase % 2]);
  barrier->bytes -= bytes;
  if (barrier->in_flight == 0 && barrier->after_copies == 0)
    block.async()->complete(*barrier, __builtin_return_address(0));
}

void arrive_after_copies(void* address) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  TransactionBarrier* const barrier =
      find_barrier(thread, address, thread.block, "arrives after copies at a barrier");
  if (barrier == nullptr) return;
  Async& async = *thread.block.async();
  async.complete(*barrier, __builtin_return_address(0));
  if (barrier->missing == barrier->after_copies)
    return thread.block.fail(
        thread,
        fmt::format(
            "arrives after copies at the barrier at byte {} of shared memory, though all {} arrivals of "
            "its phase {} have been made",
            barrier->offset, barrier->arrivals, barrier->phase));
  sanitizers::release(&barrier->sync[barrier->phase % 2]);
  ++barrier->after_copies;
  async.arrivals.push_back(
      {&thread, thread.copies.issued(), static_cast<int>(barrier - async.barriers.data())});
}

void wait_for_barrier(void* address, int parity) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  TransactionBarrier* const barrier = find_barrier(thread, address, thread.block, "waits at a barrier");
  if (barrier == nullptr) return;
  if (parity != 0 && parity != 1)
    return thread.block.fail(thread,
                             fmt::format("waits for parity {} of a barrier; valid values: 0 and 1", parity));
  Async& async = *thread.block.async();
  struct Context {
    Async& async;
    std::size_t index;
    int parity;
    void const* caller;
  } context{async, static_cast<std::size_t>(barrier - async.barriers.data()), parity,
            __builtin_return_address(0)};
  thread.tell = tell_phase;
  thread.waits_for = static_cast<int>(context.index);
  thread.detail = parity;
  thread.block.poll(
      thread, "a barrier",
      [](void* pointer) {
        Context const& it = *static_cast<Context*>(pointer);
        TransactionBarrier& waited = it.async.barriers[it.index];
        if (waited.phase % 2 == it.parity) it.async.complete(waited, it.caller);
        return waited.phase % 2 != it.parity;
      },
      &context);
  thread.tell = nullptr;
  sanitizers::acquire(&async.barriers[context.index].sync[parity]);
}

}  // namespace cosmati::emulator
