// Branch-free functions, so that loops over them vectorize; within 4 ulp. Logarithm and power of double call
// the C++ library.
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#include "src/epilogue/vector_constants.h"

#define COSMATI_INLINE inline __attribute__((always_inline))

namespace cosmati::epilogue::vector_math {

template <class To, class From>
COSMATI_INLINE To bits_of(From value) {
  return __builtin_bit_cast(To, value);
}

// c[0] + x * (c[1] + x * (...))
template <std::size_t first = 0, class Real, std::size_t count>
COSMATI_INLINE Real polynomial(Real x, Real const (&c)[count]) {
  if constexpr (first + 1 == count)
    return c[first];
  else
    return c[first] + x * polynomial<first + 1>(x, c);
}

template <class Real>
COSMATI_INLINE Real minimum(Real a, Real b) {
  Real const smaller = a < b ? a : b;  // b if either is NaN
  return a == a ? smaller : a;
}

template <class Real>
COSMATI_INLINE Real maximum(Real a, Real b) {
  Real const larger = a > b ? a : b;
  return a == a ? larger : a;
}

template <class Real>
COSMATI_INLINE Real absolute(Real x) {
  using C = Constants<Real>;
  return bits_of<Real>(bits_of<typename C::Bits>(x) & ~C::sign);
}

template <class Real>
COSMATI_INLINE Real copy_sign(Real magnitude, Real sign) {  // magnitude >= 0 or NaN
  using C = Constants<Real>;
  using Bits = typename C::Bits;
  return bits_of<Real>(bits_of<Bits>(magnitude) | (bits_of<Bits>(sign) & C::sign));
}

// Rounds to the nearest integer, ties to even: after adding 2^23 (2^52) no bits remain for a fraction.
template <class Real>
COSMATI_INLINE Real round(Real x) {
  constexpr Real whole = 1 / std::numeric_limits<Real>::epsilon();
  Real const magnitude = absolute(x);
  Real const rounded = copy_sign((magnitude + whole) - whole, x);
  return magnitude < whole ? rounded : x;
}

COSMATI_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
COSMATI_INLINE double square_root(double x) { return __builtin_sqrt(x); }

// exp(x) = 2^n * exp(r) with |r| <= log(2) / 2.
template <class Real>
struct Reduced {
  Real r;
  typename Constants<Real>::Bits n;  // as a two's complement number
};

// Reduces x + rest, where |rest| is small relative to x and |x| barely exceeds the range of exp. NaN gives r
// = NaN.
template <class Real>
COSMATI_INLINE Reduced<Real> reduce(Real x, Real rest) {
  using C = Constants<Real>;
  using Bits = typename C::Bits;
  Real const shifted = x * C::log2_e + C::shift;
  Real const n = shifted - C::shift;
  Real const r = (x - n * C::log2_high) - n * C::log2_low;
  return {r + rest, bits_of<Bits>(shifted) - bits_of<Bits>(C::shift)};
}

template <class Real>
COSMATI_INLINE Real two_to(typename Constants<Real>::Bits n) {  // for normal results
  return bits_of<Real>((n + Constants<Real>::bias) << Constants<Real>::mantissa_bits);
}

template <class Real>
struct Exponential {
  Real value;
  Real scaled;  // factor * value, rounded once even if value is subnormal
};

// exp(x + rest); |factor| <= largest_factor.
template <class Real>
COSMATI_INLINE Exponential<Real> exp_of_sum(Real x, Real rest, Real factor) {
  using C = Constants<Real>;
  Real const not_above = x > C::exp_highest ? C::exp_highest : x;  // NaN passes both
  Real const clamped = not_above < C::exp_lowest ? C::exp_lowest : not_above;
  Reduced<Real> const reduced = reduce(clamped, rest);
  Real const r = reduced.r;
  Real const more = r * r * polynomial(r, C::exp_tail) + r;
  // Two factors, so that subnormal results are computed correctly.
  auto const half = (reduced.n + C::even_bias) / 2 - C::even_bias / 2;
  Real const first = two_to<Real>(half), second = two_to<Real>(reduced.n - half);
  return {(1 + more) * first * second, (factor + factor * more) * first * second};
}

template <class Real>
COSMATI_INLINE Real exp(Real x) {
  return exp_of_sum<Real>(x, 0, 1).value;
}

// exp(x) - 1 for x <= 0; finite for other x.
template <class Real>
COSMATI_INLINE Real exp_minus_one(Real x) {
  using C = Constants<Real>;
  Real const not_above = x > 10 ? 10 : x;
  Real const clamped = not_above < C::exp_minus_one_lowest ? C::exp_minus_one_lowest : not_above;
  Reduced<Real> const reduced = reduce<Real>(clamped, 0);
  Real const scale = two_to<Real>(reduced.n);
  return (reduced.r * reduced.r * polynomial(reduced.r, C::exp_tail) + reduced.r) * scale + (scale - 1);
}

COSMATI_INLINE float log(float x) {
  bool const subnormal = x < std::numeric_limits<float>::min();
  float const scaled = subnormal ? x * 33554432.0f : x;  // 2^25
  float const correction = subnormal ? -25.0f : 0.0f;
  unsigned const root_half =
      0x3f3504f3u;  // of sqrt(1/2): x = 2^exponent * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
  int const exponent = static_cast<int>(bits_of<unsigned>(scaled) - root_half) >> 23;
  float const f = bits_of<float>(bits_of<unsigned>(scaled) - (static_cast<unsigned>(exponent) << 23)) - 1.0f;
  float const e = static_cast<float>(exponent) + correction;
  // (log(1 + f) - f + f^2 / 2) / f^3
  constexpr float c[] = {0.3333333118f,  -0.2499999696f, 0.2000071575f,  -0.1666780232f, 0.1424905765f,
                         -0.1242568733f, 0.1168541992f,  -0.1147973385f, 0.06971611471f};
  float const square = f * f;
  float const tail = square * f * polynomial(f, c) + e * -2.12194440e-4f - 0.5f * square;
  float const finite = f + tail + e * 0.693359375f;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float const positive = x < infinity ? finite : x;  // infinity and NaN are kept
  float const not_negative = x == 0 ? -infinity : positive;
  return x < 0 ? std::numeric_limits<float>::quiet_NaN() : not_negative;
}
COSMATI_INLINE double log(double x) { return std::log(x); }

template <class Real>
COSMATI_INLINE Real tanh(Real x) {
  Real const magnitude = absolute(x);
  Real const square = x * x;
  Real const small = x + x * (square * polynomial(square, Constants<Real>::tanh));
  Real const large = copy_sign(1 - 2 / (exp(2 * magnitude) + 1), x);
  return magnitude < Real(0.625) ? small : large;
}

// factor * sigmoid(x + rest); factor >= 0 or factor close to x in size.
template <class Real>
COSMATI_INLINE Real sigmoid_of_sum(Real x, Real rest, Real factor) {
  constexpr Real lowest = -Constants<Real>::largest_factor;
  Real const sign = x < 0 ? Real(1) : Real(-1);
  Real const bounded = factor < lowest ? lowest : factor;                  // below this, the result is 0 in
                                                                           // any case
  Exponential<Real> const e = exp_of_sum(sign * x, sign * rest, bounded);  // of -|x|: does not overflow
  Real const below = e.scaled + 0 * factor;  // 0 * infinity is NaN, as in the reference
  return (x < 0 ? below : factor) / (1 + e.value);
}
template <class Real>
COSMATI_INLINE Real sigmoid(Real x) {
  return sigmoid_of_sum<Real>(x, 0, 1);
}
template <class Real>
COSMATI_INLINE Real silu(Real x) {
  return sigmoid_of_sum<Real>(x, 0, x);
}

// scale * Phi(-t) for 0 <= t <= normal_highest or NaN: Phi is the standard normal distribution function.
template <class Real>
COSMATI_INLINE Real normal_tail(Real t, Real scale) {
  using C = Constants<Real>;
  using Bits = typename C::Bits;
  constexpr Bits rounding = (~C::half_mantissa + 1) / 2;
  Real const high = bits_of<Real>((bits_of<Bits>(t) + rounding) & C::half_mantissa);  // has an exact square
  Real const half = Real(0.5);
  Real const q = t / (t + C::normal_offset);
  Real const factor = scale / (t + C::normal_offset) * polynomial(q - Real(0.4375), C::normal);
  return exp_of_sum(-half * high * high, -half * (t - high) * (t + high), factor).scaled;
}

template <class Real>
COSMATI_INLINE Real bounded_magnitude(Real x) {
  Real const magnitude = absolute(x);
  return magnitude > Constants<Real>::normal_highest ? Constants<Real>::normal_highest : magnitude;
}

// x * Phi(x)
template <class Real>
COSMATI_INLINE Real gelu(Real x) {
  Real const t = bounded_magnitude(x);
  return (x < 0 ? 0 * x : x) - normal_tail(t, t);  // NaN at minus infinity, as in the reference
}

template <class Real>
COSMATI_INLINE Real normal_cdf(Real x) {
  Real const tail = normal_tail(bounded_magnitude(x), Real(1));
  return x < 0 ? tail : 1 - tail;
}

COSMATI_INLINE float erf(float x) {
  float const magnitude = absolute(x);
  float const square = x * x;
  // -log(erfc(x)) on 1 <= x <= 4 in powers of x - 2.5
  constexpr float far[] = {7.8068152727f,  5.3526806742f,    0.9438937036f,
                           0.01085854164f, -0.002165303549f, 4.201225235e-4f,
                           -7.7291376e-5f, 1.331501440e-5f,  -1.637151415e-6f};
  float const small = x + x * polynomial(square, Constants<float>::erf);
  float const bounded = magnitude > 4.0f ? 4.0f : magnitude;
  float const large = copy_sign(1.0f - exp(-polynomial(bounded - 2.5f, far)), x);
  return magnitude < 1.0f ? small : large;
}
// For |x| >= 1: 1 - 2 * Phi(-t) with t = sqrt(2) * |x|.
COSMATI_INLINE double erf(double x) {
  double const magnitude = absolute(x);
  double const square = x * x;
  double const small = x + x * polynomial(square, Constants<double>::erf);
  double const bounded = magnitude > 8.0 ? 8.0 : magnitude;
  double const t = (bounded < 0.5 ? 0.5 : bounded) * std::numbers::sqrt2;
  double const large = copy_sign(1.0 - 2.0 * normal_tail(t, 1.0), x);
  return magnitude < 1.0 ? small : large;
}

// x * sigmoid(2 u); 2 u is computed in double, because the exponential would amplify its relative error.
COSMATI_INLINE float gelu_tanh(float x) {
  double const wide = static_cast<double>(x);
  double const twice = 1.5957691216057308 * (wide + 0.044715 * wide * wide * wide);
  double const not_above = twice > 200.0 ? 200.0 : twice;
  double const bounded = not_above < -200.0 ? -200.0 : not_above;
  float const high = static_cast<float>(bounded);
  float const low = static_cast<float>(bounded - static_cast<double>(high));
  return sigmoid_of_sum(high, low, x);
}
// The error of 2 u, about 2^-53 relative, is amplified by the exponential here.
COSMATI_INLINE double gelu_tanh(double x) {
  double const twice = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  double const not_above = twice > 800.0 ? 800.0 : twice;
  return sigmoid_of_sum(not_above < -800.0 ? -800.0 : not_above, 0.0, x);
}

template <class Real>
COSMATI_INLINE Real leaky_relu(Real x, Real slope) {
  Real const scaled = slope * x;
  return x < 0 ? scaled : x;
}

template <class Real>
COSMATI_INLINE Real elu(Real x, Real alpha) {
  Real const curved = alpha * exp_minus_one(x);
  return x > 0 ? x : curved;
}

// Returns log2 of x > 0, the value of a float, as a double with 40 correct bits.
COSMATI_INLINE double log2_wide(double x) {
  using Bits = unsigned long long;
  constexpr Bits root_half = 0x3fe6a09e00000000u;
  constexpr Bits offset = Bits{1024} << 52;  // keeps the difference positive
  Bits const biased = (bits_of<Bits>(x) - root_half + offset) >> 52;
  double const m = bits_of<double>(bits_of<Bits>(x) - ((biased - 1024) << 52));
  constexpr Bits two_to_52 = 0x4330000000000000u;
  double const exponent = bits_of<double>(two_to_52 | biased) - (4503599627370496.0 + 1024.0);
  double const s = (m - 1) / (m + 1);
  // log2((1 + s) / (1 - s)) / s in powers of s^2
  constexpr double c[] = {2.8853900817778505, 0.96179669411256415, 0.57707794256527349,
                          0.4122092344018181, 0.31990635182681794, 0.28289185125038265};
  return exponent + s * polynomial(s * s, c);
}

COSMATI_INLINE float exp2_wide(double x) {
  double const not_above = x > 200.0 ? 200.0 : x;
  double const bounded = not_above < -200.0 ? -200.0 : not_above;
  constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
  double const shifted = bounded + shift;
  double const r = bounded - (shifted - shift);
  constexpr double c[] = {1.0,
                          0.69314718054593345,
                          0.24022650695812988,
                          0.05550410941205933,
                          0.0096181291594025582,
                          0.0013333450568000646,
                          0.00015403455852453839,
                          1.5310079402249297e-5,
                          1.3255224878668817e-6};
  unsigned long long const n = bits_of<unsigned long long>(shifted) - bits_of<unsigned long long>(shift);
  return static_cast<float>(polynomial(r, c) * bits_of<double>((n + 1023u) << 52));
}

COSMATI_INLINE float pow(float x, float y) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float const magnitude = absolute(x);
  float const ordinary = exp2_wide(static_cast<double>(y) * log2_wide(static_cast<double>(magnitude)));
  float const at_zero = y < 0 ? infinity : 0.0f;
  float const at_infinity = y < 0 ? 0.0f : infinity;
  float const above_zero = magnitude == 0 ? at_zero : ordinary;
  float const any_size = magnitude == infinity ? at_infinity : above_zero;
  float const size = magnitude == 1.0f ? (y == y ? 1.0f : y) : any_size;  // 1 to the power of infinity is 1
  bool const whole = round(y) == y;
  float const half = 0.5f * y;
  bool const odd = whole & (round(half) != half);
  float const with_sign = odd ? copy_sign(size, x) : size;
  bool const undefined = (x < 0) & (magnitude < infinity) & !whole;
  float const negative_base = undefined ? std::numeric_limits<float>::quiet_NaN() : with_sign;
  float const with_nan = x == x ? (y == y ? negative_base : y) : x;
  return ((x == 1.0f) | (y == 0)) ? 1.0f : with_nan;
}
COSMATI_INLINE double pow(double x, double y) { return std::pow(x, y); }

}  // namespace cosmati::epilogue::vector_math
