// The kernels of --backend emulator: a precompiled catalogue in a separate module. The execution of blocks
// (block.h, launch()) is part of libcosmati, for user kernels; src/plan/emulated/contents.h describes what
// the catalogue contains, so that plans do not need the module.
#pragma once
#include <memory>
#include <string>

#include "cosmati/arch/emulator.h"

namespace cosmati::emulator {

// Runs a kernel of the matching parameter type.
using RunKernel = void (*)(Grid grid, int threads, unsigned shared_bytes, void const* parameters,
                           int host_threads);

// The contents of the module.
struct Catalogue {
  // The kernel of this KernelSpec::key(), or null.
  RunKernel (*kernel)(std::string const& key);
};

// Opens the module on the first call. Throws Error(unavailable), with how to build it, if there is none.
Catalogue const& catalogue();
// Empty, or the reason why catalogue() throws.
std::string const& catalogue_failure();

}  // namespace cosmati::emulator

// The module's only exported function; the caller does not own the result.
extern "C" cosmati::emulator::Catalogue const* cosmati_emulator_catalogue();
