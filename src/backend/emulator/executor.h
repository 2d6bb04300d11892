// Runs programs with the kernels of the catalogue.
#pragma once
#include <memory>

#include "src/program/execute.h"

namespace cosmati::emulator {

// Finds the kernels in the module. Throws Error(unavailable) if it is not installed.
std::unique_ptr<program::LoadedProgram> load(program::Program program, int host_threads);

}  // namespace cosmati::emulator
