// The devices that train a network together.
#pragma once
#include <utility>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/parallel/process_group.h"

namespace cosmati::nets {

// Who trains: devices of this process, of one backend, and processes that have as many of them each. They
// share each batch.
struct Team {
  Team(Device const& device, parallel::ProcessGroup* processes = nullptr)
      : devices{device}, group(processes) {}
  Team(std::vector<Device> all, parallel::ProcessGroup* processes)
      : devices(std::move(all)), group(processes) {}

  int size() const { return static_cast<int>(devices.size()) * (group == nullptr ? 1 : group->size()); }

  std::vector<Device> devices;
  parallel::ProcessGroup* group;  // all with the same assignment; null: this process alone
};

}  // namespace cosmati::nets
