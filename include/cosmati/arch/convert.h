// Conversions between data types by hardware instructions; on the host, and for pairs without an instruction,
// by core/number.h. Rounding is always to nearest with ties to even.
#pragma once
#include "cosmati/arch/config.h"
#include "cosmati/core/number.h"

namespace cosmati::arch {

template <class From>
struct Widen {  // to float, exactly if float can represent From
  COSMATI_DEVICE static float of(From value) { return static_cast<float>(value); }
};
template <class To>
struct Narrow {  // from float
  COSMATI_DEVICE static To of(float value) { return cosmati::convert<To>(static_cast<double>(value)); }
};
template <>
struct Narrow<float> {
  COSMATI_DEVICE static float of(float value) { return value; }
};

#if defined(__CUDACC__)

template <>
struct Widen<f16> {
  COSMATI_DEVICE static float of(f16 value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
  }
};
template <>
struct Widen<bf16> {
  COSMATI_DEVICE static float of(bf16 value) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
  }
};
template <>
struct Widen<e5m2> {  // the upper half of an f16
  COSMATI_DEVICE static float of(e5m2 value) {
    return Widen<f16>::of(f16::from_bits(static_cast<unsigned short>(value.bits << 8)));
  }
};
template <>
struct Widen<e4m3> {  // f16's exponent has one more bit: scaled by 2^8 it is exact, including subnormals
  COSMATI_DEVICE static float of(e4m3 value) {
    unsigned const bits = value.bits;
    if ((bits & 0x7f) == 0x7f) return __uint_as_float(0x7fc00000u);
    unsigned short const half = static_cast<unsigned short>((bits & 0x80) << 8 | (bits & 0x7f) << 7);
    return Widen<f16>::of(f16::from_bits(half)) * 256.0f;
  }
};
template <>
struct Narrow<f16> {
  COSMATI_DEVICE static f16 of(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return f16::from_bits(bits);
  }
};
template <>
struct Narrow<tf32> {  // NaN becomes the pattern that core/number.h gives it
  COSMATI_DEVICE static tf32 of(float value) {
    tf32 result;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    unsigned bits;
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#else
    unsigned bits = __float_as_uint(value);
    if ((~bits & 0x7f800000u) != 0)
      bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
    else if ((bits & 0x7fffffu) != 0)
      bits = (bits & 0x80000000u) | 0x7fc00000u;
#endif
    result.value = __uint_as_float(bits);
    return result;
  }
};
template <>
struct Narrow<s32> {
  COSMATI_DEVICE static s32 of(float value) { return __float2int_rn(value); }
};
template <>
struct Narrow<s8> {
  COSMATI_DEVICE static s8 of(float value) {
    int result;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(result) : "f"(value));
    return static_cast<s8>(result);
  }
};
template <>
struct Narrow<u8> {
  COSMATI_DEVICE static u8 of(float value) {
    unsigned result;
    asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(result) : "f"(value));
    return static_cast<u8>(result);
  }
};
template <>
struct Narrow<bf16> {
  COSMATI_DEVICE static bf16 of(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bf16::from_bits(bits);
#else
    return bf16(static_cast<double>(value));
#endif
  }
};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
template <>
struct Narrow<e4m3> {
  COSMATI_DEVICE static e4m3 of(float value) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return e4m3::from_bits(static_cast<unsigned char>(pair));
  }
};
template <>
struct Narrow<e5m2> {
  COSMATI_DEVICE static e5m2 of(float value) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return e5m2::from_bits(static_cast<unsigned char>(pair));
  }
};
#endif

#endif

// The value of `from` as a To, rounded once.
template <class To, class From>
COSMATI_DEVICE To number_cast(From from) {
  if constexpr (is_same<To, From>)
    return from;
  else if constexpr (is_same<From, double> || is_same<To, double>)
    return cosmati::convert<To>(static_cast<double>(from));
  else if constexpr (is_same<From, s32> || is_same<From, s8> || is_same<From, u8>)
    if constexpr (is_same<To, s32> || is_same<To, float>)
      return static_cast<To>(from);
    else
      return cosmati::convert<To>(static_cast<double>(from));
  else
    return Narrow<To>::of(Widen<From>::of(from));
}

}  // namespace cosmati::arch
