// Our narrow types have the same bits as CUDA's: every bit pattern, and rounding at every boundary.
#include <gtest/gtest.h>

#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>) && __has_include(<cuda_fp8.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>

#include "cosmati/core/number.h"

namespace cosmati {
namespace {

template <class To, class From>
To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// For each pair of adjacent values: both values, their midpoint, and the neighbors of the midpoint.
template <class Number, class Visit>
void for_each_boundary(Visit const& visit) {
  constexpr unsigned patterns = 1U << Number::format.bits();
  for (unsigned pattern = 0; pattern + 1 < patterns; ++pattern) {
    auto const low = static_cast<float>(decode(pattern, Number::format));
    auto const high = static_cast<float>(decode(pattern + 1, Number::format));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    float const middle = low + (high - low) / 2;
    for (float value : {low, middle, std::nextafter(middle, low), std::nextafter(middle, high)}) visit(value);
  }
  for (float value : {1e30F, -1e30F, 0.0F, -0.0F, 1e-30F, 65519.9F, 65520.0F}) visit(value);
}

TEST(CudaTypes, F16) {
  static_assert(sizeof(f16) == sizeof(__half) && alignof(f16) == alignof(__half));
  for (unsigned pattern = 0; pattern < 65536; ++pattern) {
    float const ours = static_cast<float>(f16::from_bits(static_cast<unsigned short>(pattern)));
    float const theirs = __half2float(bits_of<__half>(static_cast<unsigned short>(pattern)));
    EXPECT_TRUE(ours == theirs || (std::isnan(ours) && std::isnan(theirs))) << pattern;
  }
  for_each_boundary<f16>([](float value) {
    EXPECT_EQ(f16(static_cast<double>(value)).bits, bits_of<unsigned short>(__float2half_rn(value))) << value;
  });
}

TEST(CudaTypes, Bf16) {
  static_assert(sizeof(bf16) == sizeof(__nv_bfloat16));
  for_each_boundary<bf16>([](float value) {
    EXPECT_EQ(bf16(static_cast<double>(value)).bits, bits_of<unsigned short>(__float2bfloat16_rn(value)))
        << value;
  });
}

TEST(CudaTypes, Fp8) {
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    auto const bits = static_cast<unsigned char>(pattern);
    float const ours[] = {static_cast<float>(e4m3::from_bits(bits)),
                          static_cast<float>(e5m2::from_bits(bits))};
    float const theirs[] = {static_cast<float>(bits_of<__nv_fp8_e4m3>(bits)),
                            static_cast<float>(bits_of<__nv_fp8_e5m2>(bits))};
    for (int i : {0, 1})
      EXPECT_TRUE(ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i]))) << pattern;
  }
  for_each_boundary<e4m3>([](float value) {
    EXPECT_EQ(e4m3(static_cast<double>(value)).bits, bits_of<unsigned char>(__nv_fp8_e4m3(value))) << value;
  });
  for_each_boundary<e5m2>([](float value) {
    EXPECT_EQ(e5m2(static_cast<double>(value)).bits, bits_of<unsigned char>(__nv_fp8_e5m2(value))) << value;
  });
}

}  // namespace
}  // namespace cosmati

#else

TEST(CudaTypes, AreThoseOfTheToolkit) { GTEST_SKIP() << "CUDA's headers are not here"; }

#endif
