// Tasks on a GPU for arrays of the host.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "cli/operations/task.h"

namespace cosmati::cli {

// `prepared` as it is where the device computes in host memory. On a GPU, a task that takes the same
// pointers: each run brings the arrays and the workspace to device memory, computes, waits, and brings back
// what was written. Arrays lie there at the host address modulo 64, and between NaN. `guard`: bytes of host
// memory before and after each output, at most 512, that travel with it, so that what a kernel wrote outside
// is seen.
std::unique_ptr<PreparedTask> for_host_arrays(std::unique_ptr<PreparedTask> prepared, Device const& device,
                                              std::vector<Slot> slots, std::size_t guard = 0);

}  // namespace cosmati::cli
