// The kernels and launches of a primitive.
#pragma once
#include "src/plan/primitive/program.h"

namespace cosmati::plan {

// The kernel of a pass on a GPU, composed of the pass's functions.
program::KernelSpec kernel_of(PrimitivePass const& pass);

// One launch for each pass.
program::Program launches_of(PrimitiveProgram const& primitive, Backend backend);

}  // namespace cosmati::plan
