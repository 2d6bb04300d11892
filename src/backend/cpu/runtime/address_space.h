// Address space left by the process limit (ulimit -v), for libraries that do not check allocations.
#pragma once
#include <cstddef>

namespace cosmati::cpu {

// True if there is no limit, or if `bytes` can currently be reserved under it.
bool address_space_has(std::size_t bytes);

}  // namespace cosmati::cpu
