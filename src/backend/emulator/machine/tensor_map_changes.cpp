// PTX ISA, "tensormap.replace" and "fence.proxy.tensormap": after a thread has modified a map, it must
// release the map, and each thread that uses it must acquire it.
#include <fmt/format.h>

#include <cstdint>

#include "src/backend/emulator/machine/block.h"
#include "src/backend/emulator/machine/tensor_map.h"

namespace cosmati::emulator {

void replace_address(arch::TensorMap& map, void* address) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  if (!is_tensor_map(map))
    return thread.block.fail(thread,
                             "replaces the address of a tensor map that encode_tensor_map() did not make");
  auto const bits = reinterpret_cast<std::uintptr_t>(address);
  if (address == nullptr || bits % 16 != 0)
    return thread.block.fail(
        thread,
        fmt::format("sets the address of a tensor map to 0x{:x}, which is null or not a multiple of 16",
                    bits));
  change_address(map, address);
  thread.async.changed_maps.push_back(&map);
}

void release_maps() {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  for (arch::TensorMap* const map : thread.async.changed_maps) mark_released(*map);
  thread.async.changed_maps.clear();
}

void acquire_map(arch::TensorMap const& map) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait() || !is_tensor_map(map)) return;
  thread.async.acquired_maps.push_back({&map, tiling_of(map).address});
}

std::string mistake_of_change(AsyncThread const& thread, arch::TensorMap const& map) {
  MapChange const change = change_of(map);
  if (change == MapChange::none) return {};
  if (change == MapChange::made)
    return "whose tensor map a kernel has changed and not released (release_maps())";
  for (AcquiredMap const& acquired : thread.acquired_maps)
    if (acquired.map == &map && acquired.address == tiling_of(map).address) return {};
  return "whose tensor map a kernel has changed; this thread has not acquired it since (acquire())";
}

}  // namespace cosmati::emulator
