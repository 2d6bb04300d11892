// Sums over the devices of this process and of all processes that mpirun started with it.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/parallel/process_group.h"

namespace cosmati::parallel {

// One device's part in sums over all devices. All parts make the same calls in the same order; devices of one
// process are each driven by a separate thread.
class AllReduce {
 public:
  virtual ~AllReduce() = default;
  // data[i] = the sum of weight * data[i] over all devices, bit-identical on all of them; each has its own
  // weight. f32, device memory. On the backend cuda enqueued on `stream`, which may be recording; other
  // backends are synchronous. Throws Error(system).
  virtual void sum(float* data, std::size_t count, double weight, Stream stream) = 0;
  // Callable from any thread: releases all threads that wait for this device, now or later. sum() throws from
  // now on.
  virtual void abort() noexcept = 0;
};

// Returns a part for each of `devices`, all of one backend, with the same number in each process of `group`
// (null: this process only), which must all call this function. Uses NCCL on the backend cuda, where each
// device may occur once; otherwise host threads and MPI. Throws Error(unavailable) if NCCL is not available.
std::vector<std::unique_ptr<AllReduce>> make_all_reduce(std::vector<Device> const& devices,
                                                        ProcessGroup* group);

}  // namespace cosmati::parallel
