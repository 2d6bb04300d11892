// Function qualifiers for three compilers, and the index type. Every header of the project includes this one.
#pragma once
#include "cosmati/core/cxx20.h"

#if defined(__CUDACC__)
#define COSMATI_CONSTEXPR __host__ __device__ constexpr
#else
#define COSMATI_CONSTEXPR constexpr
#endif

namespace cosmati {

// Extents, strides and offsets, in elements. 64 bits, since products of extents exceed 2^31.
using Index = long long;

}  // namespace cosmati
