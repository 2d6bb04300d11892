// Kernels of the process's cache, loaded onto a device.
#pragma once
#include <span>
#include <vector>

#include "src/backend/cuda/driver/module.h"
#include "src/jit/cache.h"

namespace cosmati::cuda {

// Finds the kernels in the cache or compiles them, in parallel, and loads them onto device `ordinal`. An
// entry of the cache that the driver does not support is compiled again: processes with different drivers may
// share a folder. Throws Error: the compiler's errors; unavailable or system if the driver refuses the
// result.
std::vector<Function> load_kernels(int ordinal, std::span<jit::Source const> sources);
Function load_kernel(int ordinal, jit::Source const& source);

}  // namespace cosmati::cuda
