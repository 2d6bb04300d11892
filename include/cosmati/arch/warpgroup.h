// Tensor core products of a warpgroup: 128 threads, the first a multiple of 128, multiply 64 rows by n
// columns and 32 bytes of depth (PTX: wgmma), asynchronously: between warpgroup_begin() and warpgroup_wait()
// no thread may access the sums, or the memory that the descriptors (tile/matrix_descriptor.h) refer to. With
// w = thread / 32 % 4, g = thread / 4 % 8, t = thread % 4:
//   d[i]: row 16 * w + g + 8 * (i / 2 % 2), column 8 * (i / 4) + 2 * t + i % 2; f16 sums of adjacent columns
//   share a HalfPair: d[i]: row 16 * w + g + 8 * (i % 2), columns from 8 * (i / 2) + 2 * t;
//   a[r]: row 16 * w + g + 8 * (r % 2), the four bytes of depth from 16 * (r / 2) + 4 * t.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/config.h"
#include "cosmati/core/number.h"

namespace cosmati::arch {

// Registers per thread for 64 x n sums: float, int or HalfPair.
template <int n, class Sum>
inline constexpr int warpgroup_registers = is_same<Sum, HalfPair> ? n / 4 : n / 2;

template <class ElementA, class ElementB, bool a_along_outer, bool b_along_outer, int n, class Sum, int count>
COSMATI_CONSTEXPR void check_warpgroup_product() {
  static_assert(n % 8 == 0 && n >= 8 && n <= 256, "wgmma: n must be a multiple of 8 up to 256");
  static_assert(is_same<Sum, float> || n % 16 == 0 || n == 8,
                "wgmma: n must be 8 or a multiple of 16 unless sums are float");
  static_assert(sizeof(ElementA) == sizeof(ElementB), "wgmma multiplies elements of equal size");
  static_assert(sizeof(ElementA) == 2 || !(a_along_outer || b_along_outer),
                "wgmma reads MN-major operands only with 16-bit elements");
  static_assert(is_same<Sum, float> || is_same<Sum, int> || is_same<Sum, HalfPair>,
                "wgmma accumulates in float, int or HalfPair");
  static_assert(count == warpgroup_registers<n, Sum>, "a thread has n / 2 sums of d, or n / 4 HalfPairs");
}

}  // namespace cosmati::arch

#if defined(__CUDACC__)
#include "cosmati/arch/warpgroup_ptx.h"
#else
#include "cosmati/arch/warpgroup_emulated.h"
#endif
