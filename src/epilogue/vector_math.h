// Functions of float without branches, so that a loop over them becomes vector instructions; within 4 ulp.
// The polynomials are Chebyshev fits of our own over the intervals that the comments name. The overloads for
// double call the C++ library.
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

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
  Real const smaller = a < b ? a : b;  // b where either is NaN
  return a == a ? smaller : a;
}

template <class Real>
COSMATI_INLINE Real maximum(Real a, Real b) {
  Real const larger = a > b ? a : b;
  return a == a ? larger : a;
}

template <class Real>
COSMATI_INLINE Real absolute(Real x) {
  return x < 0 ? -x : x == 0 ? Real(0) : x;
}
template <>
COSMATI_INLINE float absolute(float x) {
  return bits_of<float>(bits_of<unsigned>(x) & 0x7fffffffu);
}

COSMATI_INLINE float copy_sign(float magnitude, float sign) {  // magnitude >= 0 or NaN
  return bits_of<float>(bits_of<unsigned>(magnitude) | (bits_of<unsigned>(sign) & 0x80000000u));
}
COSMATI_INLINE double copy_sign(double magnitude, double sign) { return __builtin_copysign(magnitude, sign); }

// To the nearest integer, ties to even: adding 2^23 (2^52) leaves no bits for a fraction.
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
struct Reduced {
  float r;
  unsigned n;  // as a two's complement number
};

// Of x + rest, where |rest| is small beside x; |x| < 200. NaN gives r = NaN.
COSMATI_INLINE Reduced reduce(float x, float rest) {
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the rounded integer
  float const shifted = x * 1.44269504f + shift;
  float const n = shifted - shift;
  float const r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // log(2) in two parts, the first of 9 bits
  return {r + rest, bits_of<unsigned>(shifted) - bits_of<unsigned>(shift)};
}

COSMATI_INLINE float two_to(unsigned n) { return bits_of<float>((n + 127u) << 23); }  // -126 <= n <= 127

// (exp(r) - 1 - r) / r^2 on |r| <= log(2) / 2
COSMATI_INLINE float exp_tail(float r) {
  constexpr float c[] = {0.50000000143f,  0.16666666683f,  0.04166645681f,
                         0.008333310024f, 0.001393454193f, 1.989198131e-4f};
  return polynomial(r, c);
}

struct Exponential {
  float value;
  float scaled;  // factor * value, rounded once also where value itself is subnormal
};

// exp(x + rest); |factor| <= 200.
COSMATI_INLINE Exponential exp_of_sum(float x, float rest, float factor) {
  float const not_above = x > 100.0f ? 100.0f : x;  // NaN passes both
  float const clamped = not_above < -115.0f ? -115.0f : not_above;
  Reduced const reduced = reduce(clamped, rest);
  float const r = reduced.r;
  float const more = r * r * exp_tail(r) + r;
  unsigned const half = (reduced.n + 1024u) / 2 - 512u;  // two factors, so that subnormal results come out
  float const first = two_to(half), second = two_to(reduced.n - half);
  return {(1.0f + more) * first * second, (factor + factor * more) * first * second};
}

COSMATI_INLINE float exp(float x) { return exp_of_sum(x, 0.0f, 1.0f).value; }
COSMATI_INLINE double exp(double x) { return std::exp(x); }

// exp(x) - 1 for x <= 0; finite for other x.
COSMATI_INLINE float exp_minus_one(float x) {
  float const not_above = x > 10.0f ? 10.0f : x;
  float const clamped = not_above < -30.0f ? -30.0f : not_above;
  Reduced const reduced = reduce(clamped, 0.0f);
  float const scale = two_to(reduced.n);
  return (reduced.r * reduced.r * exp_tail(reduced.r) + reduced.r) * scale + (scale - 1.0f);
}
COSMATI_INLINE double exp_minus_one(double x) { return std::expm1(x); }

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
  float const positive = x < infinity ? finite : x;  // infinity and NaN stay
  float const not_negative = x == 0 ? -infinity : positive;
  return x < 0 ? std::numeric_limits<float>::quiet_NaN() : not_negative;
}
COSMATI_INLINE double log(double x) { return std::log(x); }

COSMATI_INLINE float tanh(float x) {
  float const magnitude = absolute(x);
  float const square = x * x;
  // (tanh(x) / x - 1) / x^2 on |x| <= 0.64
  constexpr float c[] = {-0.3333332786f, 0.1333266348f, -0.05383514126f, 0.02092414818f, -0.005992961254f};
  float const small = x + x * (square * polynomial(square, c));
  float const large = copy_sign(1.0f - 2.0f / (exp(2.0f * magnitude) + 1.0f), x);
  return magnitude < 0.625f ? small : large;
}
COSMATI_INLINE double tanh(double x) { return std::tanh(x); }

// factor * sigmoid(x + rest); factor >= 0 or factor close to x in size.
COSMATI_INLINE float sigmoid_of_sum(float x, float rest, float factor) {
  float const sign = x < 0 ? 1.0f : -1.0f;
  float const bounded = factor < -200.0f ? -200.0f : factor;         // below, the result is 0 anyhow
  Exponential const e = exp_of_sum(sign * x, sign * rest, bounded);  // of -|x|: does not overflow
  return (x < 0 ? e.scaled : factor) / (1.0f + e.value);
}
COSMATI_INLINE float sigmoid(float x) { return sigmoid_of_sum(x, 0.0f, 1.0f); }
COSMATI_INLINE double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

COSMATI_INLINE float silu(float x) { return sigmoid_of_sum(x, 0.0f, x); }
COSMATI_INLINE double silu(double x) { return x / (1 + std::exp(-x)); }

COSMATI_INLINE float erf(float x) {
  float const magnitude = absolute(x);
  float const square = x * x;
  // erf(x) / x - 1 on |x| <= 1, and -log(erfc(x)) on 1 <= x <= 4 in powers of x - 2.5
  constexpr float near[] = {0.1283791658f,   -0.3761262667f,    0.1128359472f,  -0.02685421201f,
                            0.005189087423f, -0.0008016864287f, 7.875875063e-5f};
  constexpr float far[] = {7.8068152727f,  5.3526806742f,    0.9438937036f,
                           0.01085854164f, -0.002165303549f, 4.201225235e-4f,
                           -7.7291376e-5f, 1.331501440e-5f,  -1.637151415e-6f};
  float const small = x + x * polynomial(square, near);
  float const bounded = magnitude > 4.0f ? 4.0f : magnitude;
  float const large = copy_sign(1.0f - exp(-polynomial(bounded - 2.5f, far)), x);
  return magnitude < 1.0f ? small : large;
}
COSMATI_INLINE double erf(double x) { return std::erf(x); }

// x * Phi(x), where Phi(-t) = exp(-t^2 / 2) * R(t) for t >= 0.
COSMATI_INLINE float gelu(float x) {
  float const magnitude = absolute(x);
  float const t = magnitude > 20.0f ? 20.0f : magnitude;
  float const high =
      bits_of<float>((bits_of<unsigned>(t) + 0x800u) & 0xfffff000u);  // 12 bits: an exact square
  // t * R(t) = q * P(q) with q = t / (t + 3); P in powers of q - 0.4375, on 0 <= t <= 14.6
  constexpr float c[] = {0.7964337631f,   -1.137923639f,  0.986514495f,  -0.3279276125f,
                         -0.2321976407f,  0.1885691194f,  0.1153988227f, -0.09315123652f,
                         -0.09100344989f, 0.03273721075f, 0.05671585318f};
  float const q = t / (t + 3.0f);
  float const factor = q * polynomial(q - 0.4375f, c);
  float const tail =  // t * Phi(-t)
      exp_of_sum(-0.5f * high * high, -0.5f * (t - high) * (t + high), factor).scaled;
  return x < 0 ? -tail : x - tail;
}
COSMATI_INLINE double gelu(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

// x * sigmoid(2 u); 2 u is formed in double, for its relative error would grow with it in the exponential.
COSMATI_INLINE float gelu_tanh(float x) {
  double const wide = static_cast<double>(x);
  double const twice = 1.5957691216057308 * (wide + 0.044715 * wide * wide * wide);
  double const not_above = twice > 200.0 ? 200.0 : twice;
  double const bounded = not_above < -200.0 ? -200.0 : not_above;
  float const high = static_cast<float>(bounded);
  float const low = static_cast<float>(bounded - static_cast<double>(high));
  return sigmoid_of_sum(high, low, x);
}
COSMATI_INLINE double gelu_tanh(double x) {
  return x / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
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

// log2 of x > 0, a float's value, as a double with 40 right bits
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
