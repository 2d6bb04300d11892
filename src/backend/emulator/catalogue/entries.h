// The exports of the module.
#pragma once
#include "src/backend/emulator/catalogue.h"

namespace cosmati::emulator {

void run_primitive(plan::PrimitiveProgram const& program, plan::PrimitiveRun const& run, int host_threads);
RunKernel find_kernel(std::string const& key);

}  // namespace cosmati::emulator
