// The kernels of --backend emulator: a precompiled catalogue in a separate module. The execution of blocks
// (block.h, launch()) is part of libcosmati, for user kernels; what the catalogue has is known to
// src/plan/emulated/contents.h, so that plans do not need the module.
#pragma once
#include <memory>
#include <string>

#include "cosmati/arch/emulator.h"
#include "cosmati/ops/convolution.h"
#include "src/backend/emulator/primitive.h"

namespace cosmati::emulator {

// Runs a kernel whose parameters' type it knows.
using RunKernel = void (*)(Grid grid, int threads, unsigned shared_bytes, void const* parameters,
                           int host_threads);

// What the module offers.
struct Catalogue {
  RunPrimitive primitive;
  // The kernel of this KernelSpec::key(), or null.
  RunKernel (*kernel)(std::string const& key);
};

// Opens the module at the first call. Throws Error(unavailable) with how to build it where there is none.
Catalogue const& catalogue();
// Empty, or why catalogue() throws.
std::string const& catalogue_failure();

}  // namespace cosmati::emulator

// The module's one exported function; the caller does not free the result.
extern "C" cosmati::emulator::Catalogue const* cosmati_emulator_catalogue();
