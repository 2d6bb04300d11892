// The x86-64 instruction-set levels of this library's vectorized loops.
#pragma once
#include "cosmati/core/cxx20.h"

#include <optional>

namespace cosmati::epilogue {

// The levels that loops are compiled for: x86-64 (SSE2), x86-64-v3 (AVX2, FMA) or x86-64-v4 (AVX-512).
enum class VectorLevel : unsigned char { baseline, v3, v4 };

char const* name_of(VectorLevel level);  // SSE2, AVX2, AVX512

// COSMATI_MAX_CPU_ISA, read once: SSE2, AVX2 or AVX512. nullopt if it is unset or empty. It limits our own
// kernels, oneDNN and OpenBLAS. Throws Error(bad_request) for another value.
std::optional<VectorLevel> vector_level_limit();

// The highest level that this processor supports and the limit allows. Throws like vector_level_limit().
VectorLevel best_vector_level();

}  // namespace cosmati::epilogue
