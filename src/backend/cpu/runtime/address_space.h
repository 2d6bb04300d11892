// Address space left by the process limit (ulimit -v), for libraries that do not check allocations.
#pragma once
#include <cstddef>

namespace cosmati::cpu {

// True where there is no limit, or `bytes` can be reserved under it now.
bool address_space_has(std::size_t bytes);

}  // namespace cosmati::cpu
