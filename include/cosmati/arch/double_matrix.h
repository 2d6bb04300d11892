// Tensor cores for f64 by PTX: a warp's 16 x 8 products of four depths. With g = lane / 4 and t = lane % 4, a
// thread holds rows g and g + 8 of A at depth t, column g of B at depth t, and of D
//   d[r]: row g + 8 * (r / 2), column 2 * t + r % 2.
#pragma once
#include "cosmati/arch/config.h"
#if !defined(__CUDACC__)
#include "cosmati/arch/emulator.h"
#endif

namespace cosmati::arch {

#if defined(__CUDACC__)

// d += a * b.
COSMATI_DEVICE void multiply_matrices(double (&d)[4], double const (&a)[2], double b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
#else
  COSMATI_UNROLL
  for (int half = 0; half < 2; ++half)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
        : "d"(a[half]), "d"(b));
#endif
}

// d += a * b for eight depths, of which a thread holds t and t + 4: a[depth][row], b[depth].
COSMATI_DEVICE void multiply_matrices(double (&d)[4], double const (&a)[2][2], double const (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(b[0]), "d"(b[1]));
#else
  COSMATI_UNROLL
  for (int depth = 0; depth < 2; ++depth) multiply_matrices(d, a[depth], b[depth]);
#endif
}

#else

namespace emulated {

struct DoubleLane {
  double* d;
  double const* a;
  double b;
};

inline void multiply_doubles_of_warp(void* const* lanes, void*) {
  auto const lane_at = [&](int g, int t) { return static_cast<DoubleLane*>(lanes[4 * g + t]); };
  double result[16][8];
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      double sum = lane_at(m % 8, n / 2)->d[m / 8 * 2 + n % 2];
      for (int k = 0; k < 4; ++k) sum = __builtin_fma(lane_at(m % 8, k)->a[m / 8], lane_at(n, k)->b, sum);
      result[m][n] = sum;
    }
  for (int lane = 0; lane < 32; ++lane)
    for (int r = 0; r < 4; ++r)
      static_cast<DoubleLane*>(lanes[lane])->d[r] = result[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2];
}

}  // namespace emulated

COSMATI_DEVICE void multiply_matrices(double (&d)[4], double const (&a)[2], double b) {
  emulated::DoubleLane lane{d, a, b};
  emulator::warp_collective("mma.sync", ~0u, &lane, &emulated::multiply_doubles_of_warp);
}

COSMATI_DEVICE void multiply_matrices(double (&d)[4], double const (&a)[2][2], double const (&b)[2]) {
  for (int depth = 0; depth < 2; ++depth) multiply_matrices(d, a[depth], b[depth]);
}

#endif

}  // namespace cosmati::arch
