// The asynchronous state of a block: its initial state, and what must be complete when the block ends.
#include "src/backend/emulator/machine/async.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/backend/emulator/machine/block.h"

namespace cosmati::emulator {
namespace {

constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();

}  // namespace

Async::Async(Block& block) : writes(block.shared_memory()), block_(block) {
  barriers.reserve(128);
  loads.reserve(256);
  arrivals.reserve(4096);
  warpgroups.resize(static_cast<std::size_t>(block.work().threads / 128));
  for (Warpgroup& warpgroup : warpgroups) warpgroup.settings.reserve(64);
}

void Async::reset() {
  writes.reset();
  barriers.clear();
  loads.clear();
  arrivals.clear();
  std::fill(std::begin(named), std::end(named), NamedBarrier{});
  for (Warpgroup& warpgroup : warpgroups) {
    warpgroup.started = warpgroup.done = 0;
    warpgroup.settings.clear();
    warpgroup.registers = 0;
  }
}

std::optional<std::string> Async::left_over() const {
  for (TransactionBarrier const& barrier : barriers)
    if (barrier.in_flight > 0)
      return fmt::format(
          "ends with {} bytes of copies in flight for the barrier at byte {} of shared memory; "
          "no thread waited for them",
          barrier.in_flight, barrier.offset);
  for (auto const& thread : block_.threads()) {
    for (TileStore const& store : thread->async.stores)
      if (store.bytes.empty())
        return fmt::format(
            "ends while a box stored by thread {} is still being read from byte {} of shared memory; "
            "the thread {}",
            thread->index, store.from,
            store.group < thread->async.store_groups ? "did not wait (wait_stores_read())"
                                                     : "did not close the group (commit_stores())");
    thread->async.write_stores(all);
  }
  for (std::size_t i = 0; i < warpgroups.size(); ++i) {
    if (warpgroups[i].done < warpgroups[i].started)
      return fmt::format("ends with {} products of warpgroup {} in flight; no thread waited for them",
                         warpgroups[i].started - warpgroups[i].done, i);
    for (std::size_t thread = 128 * i; thread < 128 * (i + 1); ++thread)
      if (block_.threads()[thread]->async.register_settings !=
          static_cast<int>(warpgroups[i].settings.size()))
        return fmt::format("thread {} has set its registers {} times, others of its warpgroup {} times",
                           thread, block_.threads()[thread]->async.register_settings,
                           warpgroups[i].settings.size());
  }
  return {};
}

void AsyncThread::reset() {
  stores.clear();
  changed_maps.clear();
  acquired_maps.clear();
  for (Sums& of_product : sums) of_product.group = -1;
  operands.clear();
  begun_at = 0;
  store_groups = products = product_groups = cluster_phase = 0;
  begun = at_cluster = false;
  registers = register_settings = 0;
}

}  // namespace cosmati::emulator
