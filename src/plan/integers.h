// Integers of plans: limits of the hardware, divisions and conversions.
#pragma once
#include "cosmati/gemm/steps.h"

namespace cosmati::plan {

inline constexpr Index max_int =
    0x7fffffff;  // the largest number that kernels count to, and the maximum number of blocks of a grid
inline constexpr int max_vector_bytes = 16;  // the widest access of a thread; alignment required by TMA

constexpr int to_int(Index value) { return static_cast<int>(value); }
constexpr double to_double(Index value) { return static_cast<double>(value); }

}  // namespace cosmati::plan
