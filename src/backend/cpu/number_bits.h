// Conversion between data types and float by branch-free arithmetic on bit patterns, so that loops vectorize.
// The results are those of encode() and decode() in core/number.h, which define them.
#pragma once
#include "cosmati/core/number.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {

COSMATI_ALWAYS_INLINE unsigned bits_of(float value) { return __builtin_bit_cast(unsigned, value); }
COSMATI_ALWAYS_INLINE float float_of(unsigned bits) { return __builtin_bit_cast(float, bits); }

constexpr float float_power_of_two(int exponent) {  // -126 <= exponent <= 127
  return __builtin_bit_cast(float, static_cast<unsigned>(exponent + 127) << 23);
}

// The exponent field is shifted to its position in a float, and the result scaled by the difference of the
// biases, which also normalizes subnormals.
template <class Number>
COSMATI_ALWAYS_INLINE float to_float(Number number) {
  constexpr FloatFormat format = Number::format;
  constexpr unsigned sign_bit = 1u << (format.bits() - 1);
  constexpr unsigned infinity = format.exponent_mask() << format.mantissa_bits;
  unsigned const pattern = number.bits;
  unsigned const magnitude = pattern & (sign_bit - 1);
  unsigned const sign = (pattern & sign_bit) << (32 - format.bits());
  float const finite =
      float_of(magnitude << (23 - format.mantissa_bits)) * float_power_of_two(127 - format.bias());
  unsigned const special = format.has_infinity && magnitude == infinity ? 0x7f800000u : 0x7fc00000u;
  return float_of(sign | (magnitude > format.largest_finite() ? special : bits_of(finite)));
}

template <>
COSMATI_ALWAYS_INLINE float to_float(bf16 number) {
  return float_of(static_cast<unsigned>(number.bits) << 16);
}

// Adds half of the truncated part, or slightly less if the last kept bit is even; for subnormal results, a
// float addition has the same effect.
template <class Number>
COSMATI_ALWAYS_INLINE Number from_float(float value) {
  constexpr FloatFormat format = Number::format;
  constexpr int cut = 23 - format.mantissa_bits;
  constexpr unsigned difference = static_cast<unsigned>(127 - format.bias()) << 23;
  constexpr unsigned smallest_normal = static_cast<unsigned>(128 - format.bias()) << 23;
  constexpr float aligner = float_power_of_two(24 - format.bias() - format.mantissa_bits);
  constexpr unsigned too_large =
      format.saturates ? format.largest_finite() : format.exponent_mask() << format.mantissa_bits;
  unsigned const all = bits_of(value);
  unsigned const magnitude = all & 0x7fffffffu;
  unsigned const sign = all >> 31 << (format.bits() - 1);
  unsigned const half = (1u << (cut - 1)) - 1;
  unsigned const normal = (magnitude - difference + half + (magnitude >> cut & 1u)) >> cut;
  unsigned const subnormal = bits_of(float_of(magnitude) + aligner) - bits_of(aligner);
  unsigned const rounded = magnitude < smallest_normal ? subnormal : normal;
  unsigned const limited =
      rounded > format.largest_finite() || magnitude >= 0x7f800000u ? too_large : rounded;
  unsigned const result = magnitude > 0x7f800000u ? format.not_a_number() : limited;
  return Number::from_bits(static_cast<decltype(Number::bits)>(sign | result));
}

template <>
COSMATI_ALWAYS_INLINE bf16 from_float<bf16>(float value) {
  unsigned const all = bits_of(value);
  bool const not_a_number = (all & 0x7fffffffu) > 0x7f800000u;
  unsigned const rounded = (all + 0x7fffu + (all >> 16 & 1u)) >> 16;
  return bf16::from_bits(static_cast<unsigned short>(not_a_number ? (all >> 31 << 15 | 0x7fc0u) : rounded));
}

// tf32 keeps the upper 19 bits of a float.
COSMATI_ALWAYS_INLINE float tf32_from_float(float value) {
  unsigned const all = bits_of(value);
  bool const not_a_number = (all & 0x7fffffffu) > 0x7f800000u;
  unsigned const rounded = (all + 0xfffu + (all >> 13 & 1u)) & ~0x1fffu;
  return float_of(not_a_number ? (all & 0x80000000u) | 0x7fc00000u : rounded);
}

// Rounds to the nearest integer, ties to even, within [low, high]; NaN gives 0. The sum with 1.5 * 2^52 has
// no fraction bits.
COSMATI_ALWAYS_INLINE double rounded_integer(double value, double low, double high) {
  constexpr double aligner = 6755399441055744.0;
  double const number = value == value ? value : 0.0;
  double const above = number < low ? low : number;
  double const inside = above > high ? high : above;
  return inside + aligner - aligner;
}

}  // namespace cosmati::cpu
