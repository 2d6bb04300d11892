// OpenBLAS, opened when it is first needed: double precision products, which oneDNN does not have.
#pragma once
#include <string>

#include "cosmati/core/config.h"

namespace cosmati::cpu {

inline constexpr Index largest_blas_index = 2147483647;  // extents and leading dimensions

bool openblas_available();
std::string const& openblas_description();  // version and core type, or why it cannot be opened

// The kernels that the user has chosen by OPENBLAS_CORETYPE, if COSMATI_MAX_CPU_ISA allows them, or that suit
// this processor and that limit; null: OpenBLAS chooses by itself.
char const* openblas_core_type();

// d (m, n, row-major with leading dimension ldd) = alpha * op(a) * op(b) + beta * d on the calling thread
// alone. transposed_a: a is stored (k, m); transposed_b: b is stored (n, k); all row-major.
void openblas_dgemm(bool transposed_a, bool transposed_b, Index m, Index n, Index k, double alpha,
                    double const* a, Index lda, double const* b, Index ldb, double beta, double* d,
                    Index ldd);

}  // namespace cosmati::cpu
