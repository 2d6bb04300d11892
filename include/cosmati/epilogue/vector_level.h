// Which instructions of x86-64 the loops of this library use, on this processor.
#pragma once
#include "cosmati/core/cxx20.h"

#include <optional>

namespace cosmati::epilogue {

// What loops are compiled for: x86-64 (SSE2), x86-64-v3 (AVX2, FMA) or x86-64-v4 (AVX-512).
enum class VectorLevel : unsigned char { baseline, v3, v4 };

char const* name_of(VectorLevel level);  // SSE2, AVX2, AVX512

// COSMATI_MAX_CPU_ISA, read once: SSE2, AVX2 or AVX512. Nothing if it is unset or empty. It limits our own
// kernels, oneDNN and OpenBLAS. Throws Error(bad_request) for another value.
std::optional<VectorLevel> vector_level_limit();

// The highest level of this processor, no higher than the limit. Throws as vector_level_limit().
VectorLevel best_vector_level();

}  // namespace cosmati::epilogue
