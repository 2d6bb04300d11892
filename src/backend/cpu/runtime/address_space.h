// How much a limit of this process (ulimit -v) leaves for libraries that do not look whether they got memory.
#pragma once
#include <cstddef>

namespace cosmati::cpu {

// True where there is no limit, or `bytes` can be reserved under it now.
bool address_space_has(std::size_t bytes);

}  // namespace cosmati::cpu
