// The kernels of primitives in the emulator's catalogue.
#pragma once
#include "src/plan/primitive/program.h"

namespace cosmati::emulator {

using RunPrimitive = void (*)(plan::PrimitiveProgram const& program, plan::PrimitiveRun const& run,
                              int host_threads);

// Returns the function that runs a program. Throws Error(unavailable), with how to build the module, if there
// is none.
RunPrimitive primitive_runner();

}  // namespace cosmati::emulator
