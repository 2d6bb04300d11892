// Runs GPU tasks on host arrays.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "cli/operations/task.h"

namespace cosmati::cli {

// Returns `prepared` itself if the device computes in host memory. On a GPU, returns a task that takes the
// same pointers: each run copies the arrays and the workspace to device memory, computes, waits, and copies
// back what was written. Arrays keep their host address modulo 64 and are surrounded by NaN. `guard`: bytes
// of host memory before and after each output, at most 512, that are copied along with it, so that writes of
// a kernel outside its output are detected.
std::unique_ptr<PreparedTask> for_host_arrays(std::unique_ptr<PreparedTask> prepared, Device const& device,
                                              std::vector<Slot> slots, std::size_t guard = 0);

}  // namespace cosmati::cli
