// OpenBLAS, opened on first use: products in double precision, which oneDNN lacks, and in single precision
// where oneDNN is not available or refuses them.
#pragma once
#include <string>

#include "cosmati/core/config.h"

namespace cosmati::cpu {

inline constexpr Index largest_blas_index = 2147483647;  // extents and leading dimensions

bool openblas_available();
std::string const& openblas_description();  // version and core type, or why it cannot be opened

// Returns the core type that the user selected by OPENBLAS_CORETYPE, if COSMATI_MAX_CPU_ISA permits it, or
// the one for this processor and that limit; null: OpenBLAS chooses.
char const* openblas_core_type();

// d (m, n, row-major with leading dimension ldd) = alpha * op(a) * op(b) + beta * d on the calling thread.
// transposed_a: a is stored (k, m); transposed_b: b is stored (n, k); all row-major.
void openblas_product(bool transposed_a, bool transposed_b, Index m, Index n, Index k, double alpha,
                      double const* a, Index lda, double const* b, Index ldb, double beta, double* d,
                      Index ldd);
void openblas_product(bool transposed_a, bool transposed_b, Index m, Index n, Index k, double alpha,
                      float const* a, Index lda, float const* b, Index ldb, double beta, float* d, Index ldd);

}  // namespace cosmati::cpu
