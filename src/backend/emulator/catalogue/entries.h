// The exports of the module.
#pragma once
#include "src/backend/emulator/catalogue.h"

namespace cosmati::emulator {

RunKernel find_kernel(std::string const& key);

}  // namespace cosmati::emulator
