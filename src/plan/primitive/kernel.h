// The kernel of a pass of a primitive.
#pragma once
#include "src/plan/primitive/program.h"
#include "src/program/program.h"

namespace cosmati::plan {

program::KernelSpec kernel_of(PrimitivePass const& pass);

}  // namespace cosmati::plan
