// The devices that train a network together.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cosmati/ops/memory.h"
#include "src/parallel/all_reduce.h"
#include "src/parallel/process_group.h"

namespace cosmati::nets {

// The participants: devices of this process, of one backend, and processes with the same number of devices.
// They share each batch.
struct Team {
  Team(Device const& device, parallel::ProcessGroup* processes = nullptr)
      : devices{device}, group(processes) {}
  Team(std::vector<Device> all, parallel::ProcessGroup* processes)
      : devices(std::move(all)), group(processes) {}

  int size() const { return static_cast<int>(devices.size()) * (group == nullptr ? 1 : group->size()); }

  std::vector<Device> devices;
  parallel::ProcessGroup* group;  // all with the same assignment; null: only this process
  bool one_kernel = true;         // see Assignment
};

// The position of one device among those that share each batch.
struct Membership {
  int number = 0, of = 1;
  parallel::AllReduce* sums = nullptr;  // if there are others
  bool one_kernel = true;               // false: the devices cannot train together by one kernel each
};

// Returns a hash of `so_far` and every bit of the memory, of 4-byte elements.
std::uint64_t fingerprint(std::span<std::uint32_t const> words, std::uint64_t so_far = 0);
std::uint64_t fingerprint(DeviceMemory const& memory, std::uint64_t so_far = 0);
// Collective over all processes: throws Error(system) if one of the fingerprints of this process's devices,
// which start at number `first`, differs from that of device 0.
void check_same(std::vector<std::uint64_t> const& found, int first, parallel::ProcessGroup* group);
// Collective: returns whether `mine` is true in any process.
bool any_process(bool mine, parallel::ProcessGroup* group);

}  // namespace cosmati::nets
