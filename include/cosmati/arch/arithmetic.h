// Packed multiply-add instructions, and the byte permutations for their operands.
#pragma once
#include "cosmati/arch/config.h"
#include "cosmati/core/number.h"

namespace cosmati::arch {

// Two f16 in a register, the first in the lower half.
struct HalfPair {
  unsigned bits = 0;
};

COSMATI_DEVICE HalfPair make_pair(f16 low, f16 high) {
  return {static_cast<unsigned>(low.bits) | static_cast<unsigned>(high.bits) << 16};
}
COSMATI_DEVICE f16 low_half(HalfPair pair) { return f16::from_bits(static_cast<unsigned short>(pair.bits)); }
COSMATI_DEVICE f16 high_half(HalfPair pair) {
  return f16::from_bits(static_cast<unsigned short>(pair.bits >> 16));
}

// a * b + c, rounded once. Integers wrap modulo 2^32.
#if defined(__CUDACC__)
COSMATI_DEVICE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
COSMATI_DEVICE double multiply_add(double a, double b, double c) { return fma(a, b, c); }
#else
COSMATI_DEVICE float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
COSMATI_DEVICE double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif
COSMATI_DEVICE int multiply_add(int a, int b, int c) {
  return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(b) + static_cast<unsigned>(c));
}

#if defined(__CUDACC__)

COSMATI_DEVICE HalfPair multiply_add(HalfPair a, HalfPair b, HalfPair c) {
  HalfPair d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d.bits) : "r"(a.bits), "r"(b.bits), "r"(c.bits));
  return d;
}

// Returns c + the sum of four products of the bytes of a and b, each signed or unsigned.
template <bool signed_a, bool signed_b>
COSMATI_DEVICE int dot4(unsigned a, unsigned b, int c) {
  int d;
  if constexpr (signed_a && signed_b)
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  else if constexpr (signed_a)
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  else if constexpr (signed_b)
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  else
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// Byte i of the result is byte selector(i) of the eight bytes of low and high, where selector(i) is nibble i
// of `selector`.
COSMATI_DEVICE unsigned permute_bytes(unsigned low, unsigned high, unsigned selector) {
  return __byte_perm(low, high, selector);
}

#else

// The sum is exact in f64, unless product and addend are more than 2^30 apart; it is then rounded to f16.
COSMATI_DEVICE f16 multiply_add(f16 a, f16 b, f16 c) {
  return f16(__builtin_fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c)));
}
COSMATI_DEVICE HalfPair multiply_add(HalfPair a, HalfPair b, HalfPair c) {
  return make_pair(multiply_add(low_half(a), low_half(b), low_half(c)),
                   multiply_add(high_half(a), high_half(b), high_half(c)));
}

template <bool signed_a, bool signed_b>
COSMATI_DEVICE int dot4(unsigned a, unsigned b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 4; ++i) {
    unsigned const x = a >> 8 * i & 0xff, y = b >> 8 * i & 0xff;
    int const x_value = signed_a ? static_cast<signed char>(x) : static_cast<int>(x);
    int const y_value = signed_b ? static_cast<signed char>(y) : static_cast<int>(y);
    sum += static_cast<unsigned>(x_value * y_value);
  }
  return static_cast<int>(sum);
}

COSMATI_DEVICE unsigned permute_bytes(unsigned low, unsigned high, unsigned selector) {
  unsigned long long const bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}

#endif

// Transposes 4 x 4 bytes: byte i of columns[j] is byte j of rows[i].
COSMATI_DEVICE void transpose_bytes(unsigned const (&rows)[4], unsigned (&columns)[4]) {
  unsigned const low01 = permute_bytes(rows[0], rows[1], 0x5140);   // 00 10 01 11
  unsigned const high01 = permute_bytes(rows[0], rows[1], 0x7362);  // 02 12 03 13
  unsigned const low23 = permute_bytes(rows[2], rows[3], 0x5140);
  unsigned const high23 = permute_bytes(rows[2], rows[3], 0x7362);
  columns[0] = permute_bytes(low01, low23, 0x5410);
  columns[1] = permute_bytes(low01, low23, 0x7632);
  columns[2] = permute_bytes(high01, high23, 0x5410);
  columns[3] = permute_bytes(high01, high23, 0x7632);
}

}  // namespace cosmati::arch
