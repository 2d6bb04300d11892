// The data types and their conversions: f64 f32 tf32 f16 bf16 e4m3 e5m2 s8 u8 s32. Every conversion rounds
// once, to nearest with ties to even, from a double, which represents all of them exactly. On overflow, f16
// and bf16 become infinity, and fp8 and integer types saturate. NaN stays NaN, and becomes 0 in an integer.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

enum class DataType : unsigned char { f64, f32, tf32, f16, bf16, e4m3, e5m2, s8, u8, s32 };
inline constexpr int data_type_count = 10;

// A binary floating-point format of at most 32 bits: sign, exponent, mantissa, from the top.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // e4m3 uses that pattern for the finite value 448
  bool saturates;     // overflow becomes the largest finite value

  COSMATI_CONSTEXPR int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  COSMATI_CONSTEXPR int bits() const { return 1 + exponent_bits + mantissa_bits; }
  COSMATI_CONSTEXPR unsigned exponent_mask() const { return (1u << exponent_bits) - 1; }
  COSMATI_CONSTEXPR unsigned mantissa_mask() const { return (1u << mantissa_bits) - 1; }
  COSMATI_CONSTEXPR unsigned largest_finite() const {
    return has_infinity ? (exponent_mask() << mantissa_bits) - 1
                        : (exponent_mask() << mantissa_bits | mantissa_mask()) - 1;
  }
  COSMATI_CONSTEXPR unsigned not_a_number() const {
    return has_infinity ? exponent_mask() << mantissa_bits | 1u << (mantissa_bits - 1)
                        : exponent_mask() << mantissa_bits | mantissa_mask();
  }
};

inline constexpr FloatFormat tf32_format{8, 10, true, false};  // stored in the upper 19 bits of an f32
inline constexpr FloatFormat f16_format{5, 10, true, false};
inline constexpr FloatFormat bf16_format{8, 7, true, false};
inline constexpr FloatFormat e4m3_format{4, 3, false, true};
inline constexpr FloatFormat e5m2_format{5, 2, true, true};

// Returns the bit pattern of `format` nearest to `value`.
COSMATI_CONSTEXPR unsigned encode(double value, FloatFormat format) {
  using Bits = unsigned long long;
  Bits const bits = __builtin_bit_cast(Bits, value);
  unsigned const sign = static_cast<unsigned>(bits >> 63) << (format.bits() - 1);
  int const exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  Bits const fraction = bits & ((Bits{1} << 52) - 1);
  unsigned const infinity = format.exponent_mask() << format.mantissa_bits;
  unsigned const too_large = format.saturates ? format.largest_finite() : infinity;
  if (exponent == 1024) return sign | (fraction != 0 ? format.not_a_number() : too_large);
  if (exponent == -1023) return sign;  // zero, or a double too small for any of the formats

  int const smallest_normal = 1 - format.bias();
  bool const subnormal = exponent < smallest_normal;
  int const shift = 52 - format.mantissa_bits + (subnormal ? smallest_normal - exponent : 0);
  if (shift > 53) return sign;
  Bits const significand = Bits{1} << 52 | fraction;
  Bits const remainder = significand & ((Bits{1} << shift) - 1);
  Bits const half = Bits{1} << (shift - 1);
  Bits rounded = significand >> shift;
  if (remainder > half || (remainder == half && (rounded & 1) != 0)) ++rounded;
  // The implicit leading bit and a carry out of the mantissa each increment the exponent field.
  Bits const result =
      rounded + (subnormal ? 0 : static_cast<Bits>(exponent - smallest_normal) << format.mantissa_bits);
  return sign | (result > format.largest_finite() ? too_large : static_cast<unsigned>(result));
}

COSMATI_CONSTEXPR double power_of_two(int exponent) {  // -1022 <= exponent <= 1023
  return __builtin_bit_cast(double, static_cast<unsigned long long>(exponent + 1023) << 52);
}

// Returns the exact value of a bit pattern of `format`.
COSMATI_CONSTEXPR double decode(unsigned pattern, FloatFormat format) {
  double const sign = (pattern >> (format.bits() - 1) & 1) != 0 ? -1.0 : 1.0;
  unsigned const exponent = pattern >> format.mantissa_bits & format.exponent_mask();
  unsigned const mantissa = pattern & format.mantissa_mask();
  unsigned const magnitude = exponent << format.mantissa_bits | mantissa;
  if (magnitude > format.largest_finite()) {
    bool const infinite = format.has_infinity && mantissa == 0;
    // NVRTC has no __builtin_huge_val and no __builtin_nan.
    unsigned long long const pattern_of_f64 = infinite ? 0x7ff0000000000000ULL : 0x7ff8000000000000ULL;
    double const special = __builtin_bit_cast(double, pattern_of_f64);
    return infinite ? sign * special : special;
  }
  if (exponent == 0) return sign * mantissa * power_of_two(1 - format.bias() - format.mantissa_bits);
  double const significand = 1.0 + mantissa * power_of_two(-format.mantissa_bits);
  return sign * significand * power_of_two(static_cast<int>(exponent) - format.bias());
}

// A number stored as a bit pattern of `format` in an unsigned integer; arithmetic is in float.
template <class Storage, FloatFormat number_format>
struct Encoded {
  static constexpr FloatFormat format = number_format;
  Storage bits = 0;

  Encoded() = default;
  COSMATI_CONSTEXPR explicit Encoded(double value) : bits(static_cast<Storage>(encode(value, format))) {}
  COSMATI_CONSTEXPR static Encoded from_bits(Storage pattern) {
    Encoded number;
    number.bits = pattern;
    return number;
  }
  COSMATI_CONSTEXPR explicit operator double() const { return decode(bits, format); }
  COSMATI_CONSTEXPR explicit operator float() const { return static_cast<float>(decode(bits, format)); }
};

using f64 = double;
using f32 = float;
using f16 = Encoded<unsigned short, f16_format>;
using bf16 = Encoded<unsigned short, bf16_format>;
using e4m3 = Encoded<unsigned char, e4m3_format>;
using e5m2 = Encoded<unsigned char, e5m2_format>;
using s8 = signed char;
using u8 = unsigned char;
using s32 = int;

// An f32 rounded to TF32's ten mantissa bits on construction, as tensor cores read it in that mode.
struct tf32 {
  float value = 0;
  tf32() = default;
  COSMATI_CONSTEXPR explicit tf32(double exact)
      : value(__builtin_bit_cast(float, encode(exact, tf32_format) << 13)) {}
  COSMATI_CONSTEXPR explicit operator double() const { return value; }
  COSMATI_CONSTEXPR explicit operator float() const { return value; }
};

// Rounds to the nearest integer, ties to even, and clamps to [low, high]; NaN gives 0.
COSMATI_CONSTEXPR long long round_to_integer(double value, long long low, long long high) {
  if (!(value == value)) return 0;
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  long long const below = static_cast<long long>(value) - (value < 0 ? 1 : 0);  // floor, or one less
  double const rest = value - static_cast<double>(below);                       // in [0, 1]; 1 is exact
  if (rest == 0.5) return below + (below & 1);
  return below + (rest > 0.5 ? 1 : 0);
}

template <class Number>
COSMATI_CONSTEXPR Number convert(double value) {
  return static_cast<Number>(value);
}
template <>
COSMATI_CONSTEXPR s8 convert<s8>(double value) {
  return static_cast<s8>(round_to_integer(value, -128, 127));
}
template <>
COSMATI_CONSTEXPR u8 convert<u8>(double value) {
  return static_cast<u8>(round_to_integer(value, 0, 255));
}
template <>
COSMATI_CONSTEXPR s32 convert<s32>(double value) {
  return static_cast<s32>(round_to_integer(value, -2147483648LL, 2147483647LL));
}

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

template <class Number>
struct TypeTag {
  using type = Number;
};

// Calls visit(TypeTag<Number>{}) with the C++ type of `type`.
template <class Visit>
COSMATI_CONSTEXPR decltype(auto) visit_type(DataType type, Visit&& visit) {
  switch (type) {
    case DataType::f64: return visit(TypeTag<f64>{});
    case DataType::f32: return visit(TypeTag<f32>{});
    case DataType::tf32: return visit(TypeTag<tf32>{});
    case DataType::f16: return visit(TypeTag<f16>{});
    case DataType::bf16: return visit(TypeTag<bf16>{});
    case DataType::e4m3: return visit(TypeTag<e4m3>{});
    case DataType::e5m2: return visit(TypeTag<e5m2>{});
    case DataType::s8: return visit(TypeTag<s8>{});
    case DataType::u8: return visit(TypeTag<u8>{});
    case DataType::s32: break;
  }
  return visit(TypeTag<s32>{});
}

// Function objects instead of lambdas, since NVRTC treats generic lambdas as host functions.
namespace visitors {

struct SizeOf {
  template <class Tag>
  COSMATI_CONSTEXPR int operator()(Tag) const {
    return static_cast<int>(sizeof(typename Tag::type));
  }
};

struct Load {
  void const* data;
  Index index;
  template <class Tag>
  COSMATI_CONSTEXPR double operator()(Tag) const {
    return static_cast<double>(static_cast<typename Tag::type const*>(data)[index]);
  }
};

struct Store {
  void* data;
  Index index;
  double value;
  template <class Tag>
  COSMATI_CONSTEXPR void operator()(Tag) const {
    static_cast<typename Tag::type*>(data)[index] = convert<typename Tag::type>(value);
  }
};

}  // namespace visitors

COSMATI_CONSTEXPR int size_of(DataType type) { return visit_type(type, visitors::SizeOf{}); }

COSMATI_CONSTEXPR bool is_integer(DataType type) {
  return type == DataType::s8 || type == DataType::u8 || type == DataType::s32;
}

COSMATI_CONSTEXPR char const* name_of(DataType type) {
  constexpr char const* names[data_type_count] = {"f64",  "f32",  "tf32", "f16", "bf16",
                                                  "e4m3", "e5m2", "s8",   "u8",  "s32"};
  return names[static_cast<int>(type)];
}

// Returns element `index` of the array of `type` at `data`, as a double (exact).
COSMATI_CONSTEXPR double load(DataType type, void const* data, Index index) {
  return visit_type(type, visitors::Load{data, index});
}

// Rounds `value` into element `index` of the array of `type` at `data`.
COSMATI_CONSTEXPR void store(DataType type, void* data, Index index, double value) {
  visit_type(type, visitors::Store{data, index, value});
}

}  // namespace cosmati
