// Math functions called by kernels, in the precision of their argument.
#pragma once
#include "cosmati/arch/convert.h"

namespace cosmati {

#if defined(__CUDACC__)
// 2^(x log2 e) by one instruction: relative error up to 2^-22 (1 + |x| / 4), and 0 below 2^-126.
COSMATI_DEVICE float exponential(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.4426950408889634f));
  return power;
}
COSMATI_DEVICE double exponential(double x) { return exp(x); }
COSMATI_DEVICE float logarithm(float x) { return logf(x); }
COSMATI_DEVICE double logarithm(double x) { return log(x); }
// x^y for positive x: 2^(y log2 x), with a relative error of about 2^-22 (1 + |y log2 x|).
COSMATI_DEVICE float power(float x, float y) {
  float logarithm_of_x, result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(logarithm_of_x) : "f"(x));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(y * logarithm_of_x));
  return y == 0.0f ? 1.0f : result;
}
COSMATI_DEVICE double power(double x, double y) { return pow(x, y); }
// 1 - erf(x), which composed expressions find before CUDA's, with a relative error up to 2^-21 (1 + x^2). For
// z >= 0, erfc(z) exp(z^2) / t is approximated by a polynomial in t = 1 / (1 + z / 2) that interpolates it at
// the zeros of Chebyshev's polynomial of degree 9 in [1/6, 1]; relative error 5e-8.
COSMATI_DEVICE float erfc(float x) {
  float const z = fabsf(x);
  float t, power;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(z, 0.5f, 1.0f)));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(z * (z * -1.4426950408889634f)));
  float sum = -0.059714918961348035f;
  sum = fmaf(sum, t, 0.2877683095136119f);
  sum = fmaf(sum, t, -0.49386364874073024f);
  sum = fmaf(sum, t, 0.2856977102616707f);
  sum = fmaf(sum, t, -0.031841757376820115f);
  sum = fmaf(sum, t, 0.20485365512040785f);
  sum = fmaf(sum, t, 0.24257289295561207f);
  sum = fmaf(sum, t, 0.2824450419688328f);
  sum = fmaf(sum, t, 0.2820826736665981f);
  float const result = sum * t * power;
  return x < 0.0f ? 2.0f - result : result;
}
COSMATI_DEVICE double erfc(double x) { return ::erfc(x); }
// (1 + erf(x / sqrt(2))) / 2 for 16-bit results: relative error up to 8e-6 for |x| < 13. The tail of a normal
// distribution beyond |x| is exp(-x^2 / 2) t times a polynomial in t = 1 / (1 + 0.3 |x|).
COSMATI_DEVICE float coarse_normal_cdf(float x) {
  float t;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(fabsf(x), 0.3f, 1.0f)));
  // Written exactly like the normal density, so that expressions with both compute the exponential once.
  float const power = exponential(-0.5f * x * x);
  float sum = -0.07750772530606694f;
  sum = fmaf(sum, t, 0.21727066218851288f);
  sum = fmaf(sum, t, -0.018357855888572125f);
  sum = fmaf(sum, t, 0.14495634264470653f);
  sum = fmaf(sum, t, 0.11355007468525076f);
  sum = fmaf(sum, t, 0.12009226953864166f);
  float const tail = sum * t * power;
  return x < 0.0f ? tail : 1.0f - tail;
}
// For 16-bit results, without the branches of the exact operations: relative errors up to 2^-22.
COSMATI_DEVICE float coarse_quotient(float a, float b) {
  float result;
  asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
COSMATI_DEVICE float coarse_root(float x) {
  float result;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
COSMATI_DEVICE float coarse_gelu(float x) { return x * coarse_normal_cdf(x); }
// The larger of two numbers; b if a is NaN.
COSMATI_DEVICE float larger(float a, float b) { return fmaxf(a, b); }
COSMATI_DEVICE double larger(double a, double b) { return a > b ? a : b; }
// In each half of a register of two f16 or bf16, the larger of the two values; if only one is NaN, the other.
template <class Element>
COSMATI_DEVICE unsigned larger_halves(unsigned a, unsigned b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned larger;
  if constexpr (is_same<Element, f16>)
    asm("max.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  else
    asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
#else
  auto const half = [&](int shift) {
    auto const x = static_cast<unsigned short>(a >> shift), y = static_cast<unsigned short>(b >> shift);
    float const of_x = arch::Widen<Element>::of(Element::from_bits(x)),
                of_y = arch::Widen<Element>::of(Element::from_bits(y));
    return static_cast<unsigned>(of_x > of_y || of_y != of_y ? x : y) << shift;
  };
  return half(0) | half(16);
#endif
}
#else
COSMATI_DEVICE float exponential(float x) { return __builtin_expf(x); }
COSMATI_DEVICE double exponential(double x) { return __builtin_exp(x); }
COSMATI_DEVICE float logarithm(float x) { return __builtin_logf(x); }
COSMATI_DEVICE double logarithm(double x) { return __builtin_log(x); }
COSMATI_DEVICE float power(float x, float y) { return __builtin_powf(x, y); }
COSMATI_DEVICE double power(double x, double y) { return __builtin_pow(x, y); }
COSMATI_DEVICE float larger(float a, float b) { return a > b ? a : b; }
COSMATI_DEVICE double larger(double a, double b) { return a > b ? a : b; }
#endif

}  // namespace cosmati
