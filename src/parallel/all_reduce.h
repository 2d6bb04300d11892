// Sums over devices: those of this process and of the processes that mpirun started with it.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/parallel/process_group.h"

namespace cosmati::parallel {

// One device's part in sums that all devices take. All make the same calls in the same order; devices of one
// process each on a thread of their own.
class AllReduce {
 public:
  virtual ~AllReduce() = default;
  // data[i] = the sum of weight * data[i] over all devices, to the same bits on all of them; each has a
  // weight of its own. f32, memory of the device. On the backend cuda enqueued on `stream`, also while that
  // is being recorded; elsewhere done on return. Throws Error(system).
  virtual void sum(float* data, std::size_t count, double weight, Stream stream) = 0;
  // From any thread: whoever waits for this device, or will, stops waiting. sum() throws from now on.
  virtual void abort() noexcept = 0;
};

// A part for each of `devices`, all of one backend, as many in each process of `group` (null: there is this
// process alone); the processes call together. On the backend cuda by NCCL, each device once; elsewhere by
// host threads and MPI. Throws Error(unavailable) where there is no NCCL.
std::vector<std::unique_ptr<AllReduce>> make_all_reduce(std::vector<Device> const& devices,
                                                        ProcessGroup* group);

}  // namespace cosmati::parallel
