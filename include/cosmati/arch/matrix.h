// Tensor cores by PTX: a warp's 16 x 8 products of 32 bytes of depth, and the loads of 8 x 8 matrices for
// them. The layouts are those of PTX, "matrix fragments for mma" and "ldmatrix": with g = lane / 4 and t =
// lane % 4, for operands with E bytes per element,
//   a[r]: row g + 8 * (r % 2), the four bytes of depth from 16 * (r / 2) + 4 * t;
//   b[r]: column g, the four bytes of depth from 16 * r + 4 * t;
//   d[r]: row g + 8 * (r / 2), column 2 * t + r % 2; f16 sums of adjacent columns share a HalfPair: d[r]: row
//   g + 8 * r, columns 2 * t and 2 * t + 1.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/config.h"
#include "cosmati/core/number.h"
#if !defined(__CUDACC__)
#include "cosmati/arch/emulator.h"
#endif

namespace cosmati::arch {

#if defined(__CUDACC__)

// Loads four matrices of 8 rows of 16 bytes from shared memory: lane l passes the address of row l % 8 of
// matrix l / 8, and receives from matrix i the four bytes at 4 * t of row g; if transposed, with 16-bit
// elements, column g of rows 2 * t and 2 * t + 1.
template <bool transposed>
COSMATI_DEVICE void load_matrices(unsigned (&r)[4], void const* row) {
  unsigned const from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

// The inverse of load_matrices(), with the same layout (sm_90): lane l passes the address of row l % 8 of
// matrix l / 8.
template <bool transposed>
COSMATI_DEVICE void store_matrices(void* row, unsigned const (&r)[4]) {
  unsigned const to = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

#define COSMATI_MMA(shape, types, constraint)                                                  \
  asm("mma.sync.aligned." shape ".row.col." types                                              \
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                                        \
      "{%0, %1, %2, %3};"                                                                      \
      : "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3]) \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

// d += a * b for a 16 x 8 tile and 32 bytes of depth.
template <class ElementA, class ElementB, class Sum>
COSMATI_DEVICE void multiply_matrices(Sum (&d)[4], unsigned const (&a)[4], unsigned const (&b)[2]) {
  if constexpr (is_same<ElementA, f16>)
    COSMATI_MMA("m16n8k16", "f32.f16.f16.f32", "f");
  else if constexpr (is_same<ElementA, bf16>)
    COSMATI_MMA("m16n8k16", "f32.bf16.bf16.f32", "f");
  else if constexpr (is_same<ElementA, tf32>)
    COSMATI_MMA("m16n8k8", "f32.tf32.tf32.f32", "f");
  else if constexpr (is_same<ElementA, e4m3> && is_same<ElementB, e4m3>)
    COSMATI_MMA("m16n8k32", "f32.e4m3.e4m3.f32", "f");
  else if constexpr (is_same<ElementA, e4m3>)
    COSMATI_MMA("m16n8k32", "f32.e4m3.e5m2.f32", "f");
  else if constexpr (is_same<ElementA, e5m2> && is_same<ElementB, e4m3>)
    COSMATI_MMA("m16n8k32", "f32.e5m2.e4m3.f32", "f");
  else if constexpr (is_same<ElementA, e5m2>)
    COSMATI_MMA("m16n8k32", "f32.e5m2.e5m2.f32", "f");
  else if constexpr (is_same<ElementA, s8> && is_same<ElementB, s8>)
    COSMATI_MMA("m16n8k32", "s32.s8.s8.s32", "r");
  else if constexpr (is_same<ElementA, s8>)
    COSMATI_MMA("m16n8k32", "s32.s8.u8.s32", "r");
  else if constexpr (is_same<ElementB, s8>)
    COSMATI_MMA("m16n8k32", "s32.u8.s8.s32", "r");
  else
    COSMATI_MMA("m16n8k32", "s32.u8.u8.s32", "r");
}
#undef COSMATI_MMA

// The same for f16 with f16 sums.
template <class ElementA, class ElementB>
COSMATI_DEVICE void multiply_matrices(HalfPair (&d)[2], unsigned const (&a)[4], unsigned const (&b)[2]) {
  static_assert(is_same<ElementA, f16> && is_same<ElementB, f16>,
                "mma.sync accumulates only products of "
                "f16 in f16");
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(d[0].bits), "+r"(d[1].bits)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

namespace emulated {

struct MatricesLane {
  unsigned* r;
  void const* row;
};

template <bool transposed>
void load_matrices_of_warp(void* const* lanes, void*) {
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      auto const row = [&](int at) {
        return static_cast<unsigned char const*>(static_cast<MatricesLane*>(lanes[8 * i + at])->row);
      };
      unsigned char bytes[4];
      for (int byte = 0; byte < 4; ++byte)
        bytes[byte] = transposed ? row(lane % 4 * 2 + byte / 2)[lane / 4 * 2 + byte % 2]
                                 : row(lane / 4)[lane % 4 * 4 + byte];
      static_cast<MatricesLane*>(lanes[lane])->r[i] = __builtin_bit_cast(unsigned, bytes);
    }
}

struct StoredMatricesLane {
  unsigned const* r;
  void* row;
};

template <bool transposed>
void store_matrices_of_warp(void* const* lanes, void*) {
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      unsigned const word = static_cast<StoredMatricesLane*>(lanes[lane])->r[i];
      for (int byte = 0; byte < 4; ++byte) {
        int const at = transposed ? lane % 4 * 2 + byte / 2 : lane / 4;
        auto* const row =
            static_cast<unsigned char*>(static_cast<StoredMatricesLane*>(lanes[8 * i + at])->row);
        row[transposed ? lane / 4 * 2 + byte % 2 : lane % 4 * 4 + byte] =
            static_cast<unsigned char>(word >> 8 * byte);
      }
    }
}

template <class Sum>
struct MultiplyLane {
  Sum* d;
  unsigned const* a;
  unsigned const* b;
};

template <class Element>
float element_of(unsigned const* registers, int byte) {  // byte of the register file of one lane
  Element element;
  __builtin_memcpy(&element, reinterpret_cast<unsigned char const*>(registers) + byte, sizeof(Element));
  return static_cast<float>(element);
}

template <class ElementA, class ElementB, class Sum>
void multiply_matrices_of_warp(void* const* lanes, void*) {
  constexpr int size = static_cast<int>(sizeof(ElementA)), depth = 32 / size;
  auto const lane_at = [&](int g, int byte) {  // the lane of row or column g that holds this byte of depth
    return static_cast<MultiplyLane<Sum>*>(lanes[4 * (g % 8) + byte % 16 / 4]);
  };
  float a[16][depth], b[8][depth];
  for (int k = 0; k < depth; ++k) {
    int const byte = k * size;
    for (int m = 0; m < 16; ++m)
      a[m][k] = element_of<ElementA>(lane_at(m, byte)->a, 4 * (m / 8 + byte / 16 * 2) + byte % 4);
    for (int n = 0; n < 8; ++n)
      b[n][k] = element_of<ElementB>(lane_at(n, byte)->b, 4 * (byte / 16) + byte % 4);
  }
  Sum result[16][8];
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      Sum sum = static_cast<MultiplyLane<Sum>*>(lanes[4 * (m % 8) + n / 2])->d[m / 8 * 2 + n % 2];
      for (int k = 0; k < depth; ++k) sum += static_cast<Sum>(a[m][k] * b[n][k]);  // products are exact
      result[m][n] = sum;
    }
  for (int lane = 0; lane < 32; ++lane)
    for (int r = 0; r < 4; ++r)
      static_cast<MultiplyLane<Sum>*>(lanes[lane])->d[r] = result[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2];
}

}  // namespace emulated

template <bool transposed>
COSMATI_DEVICE void load_matrices(unsigned (&r)[4], void const* row) {
  emulator::check_access(row, 16);
  emulated::MatricesLane lane{r, row};
  emulator::warp_collective("ldmatrix", ~0u, &lane, &emulated::load_matrices_of_warp<transposed>);
}

template <bool transposed>
COSMATI_DEVICE void store_matrices(void* row, unsigned const (&r)[4]) {
  emulator::check_access(row, 16);
  emulated::StoredMatricesLane lane{r, row};
  emulator::warp_collective("stmatrix", ~0u, &lane, &emulated::store_matrices_of_warp<transposed>);
}

template <class ElementA, class ElementB, class Sum>
COSMATI_DEVICE void multiply_matrices(Sum (&d)[4], unsigned const (&a)[4], unsigned const (&b)[2]) {
  emulated::MultiplyLane<Sum> lane{d, a, b};
  emulator::warp_collective("mma.sync", ~0u, &lane,
                            &emulated::multiply_matrices_of_warp<ElementA, ElementB, Sum>);
}

// The sum of sixteen products is rounded once.
template <class ElementA, class ElementB>
COSMATI_DEVICE void multiply_matrices(HalfPair (&d)[2], unsigned const (&a)[4], unsigned const (&b)[2]) {
  static_assert(is_same<ElementA, f16> && is_same<ElementB, f16>,
                "mma.sync accumulates only products of "
                "f16 in f16");
  float sums[4];
  for (int r = 0; r < 4; ++r)
    sums[r] = static_cast<float>(r % 2 != 0 ? high_half(d[r / 2]) : low_half(d[r / 2]));
  multiply_matrices<ElementA, ElementB>(sums, a, b);
  for (int r = 0; r < 2; ++r)
    d[r] = make_pair(f16(static_cast<double>(sums[2 * r])), f16(static_cast<double>(sums[2 * r + 1])));
}

#endif

}  // namespace cosmati::arch
