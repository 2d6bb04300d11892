// What every header of the project starts from: function qualifiers that three compilers accept, and the
// index type.
#pragma once
#include "cosmati/core/cxx20.h"

#if defined(__CUDACC__)
#define COSMATI_CONSTEXPR __host__ __device__ constexpr
#else
#define COSMATI_CONSTEXPR constexpr
#endif

namespace cosmati {

// Extents, strides and offsets, in elements. 64 bits: products of extents pass 2^31.
using Index = long long;

}  // namespace cosmati
