// Every bit pattern of every small data type, and every rounding decision between two adjacent values.
#include "cosmati/core/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/random.h"

namespace cosmati {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct NamedFormat {
  char const* name;
  FloatFormat format;
  double largest;
  double smallest;  // smallest subnormal
};

// Largest and smallest values according to IEEE 754, the bfloat16 and the OCP 8-bit floating point
// specifications.
NamedFormat const formats[] = {
    {"f16", f16_format, 65504, 0x1p-24},          {"bf16", bf16_format, 0x1.fep127, 0x1p-133},
    {"e4m3", e4m3_format, 448, 0x1p-9},           {"e5m2", e5m2_format, 57344, 0x1p-16},
    {"tf32", tf32_format, 0x1.ffcp127, 0x1p-136},
};

bool is_8_bit(FloatFormat const& format) { return format.bits() == 8; }

// The value of a bit pattern, following the text of the specifications.
double decoded(unsigned pattern, FloatFormat const& format) {
  unsigned const mantissa = pattern % (1u << format.mantissa_bits);
  unsigned const exponent = (pattern >> format.mantissa_bits) % (1u << format.exponent_bits);
  double const sign = pattern >> (format.bits() - 1) != 0 ? -1 : 1;
  unsigned const all_ones = (1u << format.exponent_bits) - 1;
  int const bias = (1 << (format.exponent_bits - 1)) - 1;
  if (format.has_infinity && exponent == all_ones) return mantissa != 0 ? nan : sign * infinity;
  if (!format.has_infinity && exponent == all_ones && mantissa == (1u << format.mantissa_bits) - 1)
    return nan;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  return sign * std::ldexp(mantissa + (1u << format.mantissa_bits),
                           static_cast<int>(exponent) - bias - format.mantissa_bits);
}

// The value nearest to `value` with the precision of `format`, ties to even; it may exceed the largest finite
// value.
double rounded(double value, FloatFormat const& format) {
  if (value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  int const bias = (1 << (format.exponent_bits - 1)) - 1;
  int const quantum = std::max(exponent - 1, 1 - bias) - format.mantissa_bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
}

class EveryFormat : public ::testing::TestWithParam<NamedFormat> {
 protected:
  FloatFormat const format = GetParam().format;
  unsigned const patterns = 1u << format.bits();
  unsigned const sign_bit = patterns / 2;
};

TEST_P(EveryFormat, DecodesEveryPattern) {
  for (unsigned pattern = 0; pattern < patterns; ++pattern) {
    double const expected = decoded(pattern, format);
    double const value = decode(pattern, format);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << std::hex << pattern;
    } else {
      ASSERT_EQ(value, expected) << std::hex << pattern;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << std::hex << pattern;
    }
  }
}

TEST_P(EveryFormat, EncodesEveryValueToItsPattern) {
  for (unsigned pattern = 0; pattern < patterns; ++pattern) {
    double const value = decode(pattern, format);
    unsigned const encoded = encode(value, format);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(decode(encoded, format))) << std::hex << pattern;
    } else if (std::isinf(value) && format.saturates) {
      ASSERT_EQ(decode(encoded, format), std::copysign(GetParam().largest, value));
    } else {
      ASSERT_EQ(encoded, pattern) << std::hex << pattern;
    }
  }
}

TEST_P(EveryFormat, RoundsBetweenAdjacentValues) {
  for (unsigned low = 0; low < format.largest_finite(); ++low) {
    unsigned const high = low + 1;
    double const middle = (decode(low, format) + decode(high, format)) / 2;
    for (unsigned const sign : {0u, sign_bit}) {
      double const s = sign != 0 ? -1 : 1;
      ASSERT_EQ(encode(s * middle, format), sign | (low % 2 == 0 ? low : high)) << std::hex << low;
      ASSERT_EQ(encode(s * std::nextafter(middle, 0), format), sign | low) << std::hex << low;
      ASSERT_EQ(encode(s * std::nextafter(middle, infinity), format), sign | high) << std::hex << low;
    }
  }
}

TEST_P(EveryFormat, LargestAndSmallest) {
  EXPECT_EQ(decode(format.largest_finite(), format), GetParam().largest);
  EXPECT_EQ(decode(1, format), GetParam().smallest);
  EXPECT_EQ(encode(GetParam().smallest / 2, format), 0u);  // a tie rounds to even
  EXPECT_EQ(encode(std::nextafter(GetParam().smallest / 2, 1), format), 1u);
  EXPECT_EQ(encode(1e-320, format), 0u);
  EXPECT_EQ(encode(-1e-320, format), sign_bit);
}

TEST_P(EveryFormat, Overflow) {
  unsigned const largest = format.largest_finite();
  double const step = GetParam().largest - decode(largest - 1, format);
  double const middle = GetParam().largest + step / 2;
  unsigned const beyond =
      is_8_bit(format) ? largest : largest + 1;  // fp8 saturates; other types become infinite
  EXPECT_EQ(encode(std::nextafter(middle, 0), format), largest);
  EXPECT_EQ(encode(middle, format), beyond);
  for (double const value : {std::nextafter(middle, infinity), 1e300, infinity}) {
    EXPECT_EQ(encode(value, format), beyond);
    EXPECT_EQ(encode(-value, format), sign_bit | beyond);
  }
  EXPECT_EQ(decode(beyond, format), is_8_bit(format) ? GetParam().largest : infinity);
}

TEST_P(EveryFormat, NanStaysNan) {
  EXPECT_TRUE(std::isnan(decode(encode(nan, format), format)));
  EXPECT_TRUE(std::isnan(decode(encode(-nan, format), format)));
  double const signalling = __builtin_bit_cast(double, 0x7ff0000000000001ull);
  EXPECT_TRUE(std::isnan(decode(encode(signalling, format), format)));
}

TEST_P(EveryFormat, RandomDoublesRoundOnce) {
  testing::Random random(5);
  for (int i = 0; i < 100000; ++i) {
    double const value = std::ldexp(
        random.uniform(-1, 1), static_cast<int>(random.between(-30, format.exponent_bits > 5 ? 100 : 8)));
    double const expected = rounded(value, format);
    if (std::fabs(expected) > GetParam().largest) continue;  // covered by the test of overflow
    ASSERT_EQ(decode(encode(value, format), format), expected) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Number, EveryFormat, ::testing::ValuesIn(formats),
                         [](auto const& format) { return std::string(format.param.name); });

#if defined(__FLT16_MAX__) && !defined(__clang__)  // clang++ 14 has _Float16 only with AVX512-FP16
TEST(Number, F16IsTheCompilersHalf) {
  for (unsigned pattern = 0; pattern < 65536; ++pattern) {
    auto const half = __builtin_bit_cast(_Float16, static_cast<unsigned short>(pattern));
    double const value = static_cast<double>(f16::from_bits(static_cast<unsigned short>(pattern)));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<double>(half)));
      continue;
    }
    ASSERT_EQ(value, static_cast<double>(half));
    for (double const factor : {1.0, 1.0001, 1.000244140625, 0.99987, 1.00048828125, 0.5, 1.5e-3}) {
      auto const expected = static_cast<_Float16>(value * factor);
      ASSERT_EQ(f16(value * factor).bits, __builtin_bit_cast(unsigned short, expected)) << value * factor;
    }
  }
}
#endif

TEST(Number, Tf32KeepsTenBitsOfAFloat) {
  EXPECT_EQ(tf32(1.0 + 0x1p-10).value, 1.0f + 0x1p-10f);
  EXPECT_EQ(tf32(1.0 + 0x1p-11).value, 1.0f);                // a tie rounds to even
  EXPECT_EQ(tf32(1.0 + 3 * 0x1p-11).value, 1.0f + 0x1p-9f);  // a tie rounds to even
  EXPECT_EQ(tf32(1.0 + 0x1p-11 + 0x1p-40).value, 1.0f + 0x1p-10f);
  EXPECT_EQ(tf32(-3.0e38).value, static_cast<float>(rounded(-3.0e38, tf32_format)));
  EXPECT_EQ(tf32(1e39).value, std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(tf32(nan).value));
}

TEST(Number, IntegersRoundToEvenAndSaturate) {
  struct Case {
    double value;
    int s8_value, u8_value;
    s32 s32_value;
  };
  constexpr s32 low = -2147483647 - 1, high = 2147483647;
  for (Case const& c : {Case{0.5, 0, 0, 0},
                        Case{1.5, 2, 2, 2},
                        Case{2.5, 2, 2, 2},
                        Case{-0.5, 0, 0, 0},
                        Case{-1.5, -2, 0, -2},
                        Case{-2.5, -2, 0, -2},
                        Case{0.49999999999999994, 0, 0, 0},
                        Case{126.5, 126, 126, 126},
                        Case{127.5, 127, 128, 128},
                        Case{-128.5, -128, 0, -128},
                        Case{254.5, 127, 254, 254},
                        Case{255.5, 127, 255, 256},
                        Case{1e300, 127, 255, high},
                        Case{-1e300, -128, 0, low},
                        Case{infinity, 127, 255, high},
                        Case{-infinity, -128, 0, low},
                        Case{nan, 0, 0, 0},
                        Case{2147483646.5, 127, 255, 2147483646},
                        Case{2147483647.5, 127, 255, high},
                        Case{-2147483648.5, -128, 0, low},
                        Case{-1, -1, 0, -1},
                        Case{-0.0, 0, 0, 0}}) {
    EXPECT_EQ(convert<s8>(c.value), c.s8_value) << c.value;
    EXPECT_EQ(convert<u8>(c.value), c.u8_value) << c.value;
    EXPECT_EQ(convert<s32>(c.value), c.s32_value) << c.value;
  }
  testing::Random random(2);
  for (int i = 0; i < 100000; ++i) {
    double const value = random.uniform(-2e9, 2e9) * (random.coin() ? 1 : 1e-7);
    ASSERT_EQ(convert<s32>(value), static_cast<s32>(std::nearbyint(value))) << value;
  }
}

TEST(Number, WorksAtCompileTime) {
  static_assert(f16(1.0).bits == 0x3c00 && bf16(1.0).bits == 0x3f80);
  static_assert(e4m3(1.0).bits == 0x38 && e5m2(1.0).bits == 0x3c);
  static_assert(static_cast<double>(f16::from_bits(0xc000)) == -2.0);
  static_assert(convert<s8>(-3.5) == -4);
  static_assert(size_of(DataType::f64) == 8 && size_of(DataType::tf32) == 4 && size_of(DataType::e5m2) == 1);
}

TEST(Number, LoadAndStoreEveryType) {
  for (int i = 0; i < data_type_count; ++i) {
    auto const type = static_cast<DataType>(i);
    alignas(8) unsigned char memory[4 * 8] = {};
    for (Index at = 0; at < 4; ++at) store(type, memory, at, static_cast<double>(10 * at + 2));
    store(type, memory, 2, 3.75);
    bool const whole = is_integer(type);
    EXPECT_EQ(load(type, memory, 1), 12) << name_of(type);
    EXPECT_EQ(load(type, memory, 2), whole ? 4 : type == DataType::e5m2 ? 4 : 3.75) << name_of(type);
    EXPECT_EQ(load(type, memory, 3), 32) << name_of(type);
    for (int byte = 4 * size_of(type); byte < 32; ++byte) EXPECT_EQ(memory[byte], 0) << name_of(type);
  }
}

TEST(Number, NamesAndKinds) {
  EXPECT_STREQ(name_of(DataType::f64), "f64");
  EXPECT_STREQ(name_of(DataType::tf32), "tf32");
  EXPECT_STREQ(name_of(DataType::e5m2), "e5m2");
  EXPECT_STREQ(name_of(DataType::s32), "s32");
  EXPECT_TRUE(is_integer(DataType::u8));
  EXPECT_FALSE(is_integer(DataType::e4m3));
}

}  // namespace
}  // namespace cosmati
