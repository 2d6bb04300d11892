// The loops of the vectorized evaluator, compiled for each x86-64 level and selected when a program is
// created. COSMATI_NO_TARGET_CLONES keeps only the build's own level. Vectorization requires -fno-math-errno
// for the square root, and with g++ also -O3 and -fno-trapping-math.
#include "src/epilogue/vector_code.h"
#include "src/epilogue/vector_math.h"

#if defined(__x86_64__) && !defined(COSMATI_NO_TARGET_CLONES)
#define COSMATI_HAS_LEVELS 1
#else
#define COSMATI_HAS_LEVELS 0
#endif

// The target may be the same array as an input; the pragma tells the compiler that iterations are
// nevertheless independent.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // calls to math functions are not vectorized
#define COSMATI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#else
#define COSMATI_INDEPENDENT _Pragma("GCC ivdep")
#endif

// By default g++ uses only 256-bit vectors at this level.
#if defined(__clang__)
#define COSMATI_V4 "arch=x86-64-v4"
#else
#define COSMATI_V4 "arch=x86-64-v4,prefer-vector-width=512"
#endif

#define COSMATI_LAMBDA __attribute__((always_inline))

namespace cosmati::epilogue {
namespace detail {
namespace {

template <class Real, class Function>
COSMATI_INLINE void loop(Real* target, Lane<Real> lane, int width, Function function) {
  Real const* const a = lane.data;
  COSMATI_INDEPENDENT
  for (int i = 0; i < width; ++i) target[i] = function(a[i]);
}

template <class Real, class Function>
COSMATI_INLINE void loop(Real* target, Lane<Real> first, Lane<Real> second, int width, Function function) {
  Real const* const a = first.data;
  Real const* const b = second.data;
  if (first.uniform == second.uniform) {
    COSMATI_INDEPENDENT
    for (int i = 0; i < width; ++i) target[i] = function(a[i], b[i]);
  } else if (second.uniform) {
    Real const s = *b;
    COSMATI_INDEPENDENT
    for (int i = 0; i < width; ++i) target[i] = function(a[i], s);
  } else {
    Real const s = *a;
    COSMATI_INDEPENDENT
    for (int i = 0; i < width; ++i) target[i] = function(s, b[i]);
  }
}

template <bool a_uniform, bool b_uniform, bool c_uniform, class Real, class Function>
COSMATI_INLINE void loop_of(Real* target, Real const* a, Real const* b, Real const* c, int width,
                            Function function) {
  Real const a_value = *a, b_value = *b, c_value = *c;
  COSMATI_INDEPENDENT
  for (int i = 0; i < width; ++i)
    target[i] = function(a_uniform ? a_value : a[i], b_uniform ? b_value : b[i], c_uniform ? c_value : c[i]);
}

template <class Real, class Function>
COSMATI_INLINE void loop(Real* target, Lane<Real> first, Lane<Real> second, Lane<Real> third, int width,
                         Function function) {
  Real const* const a = first.data;
  Real const* const b = second.data;
  Real const* const c = third.data;
  switch ((first.uniform ? 1 : 0) + (second.uniform ? 2 : 0) + (third.uniform ? 4 : 0)) {
    case 1: return loop_of<true, false, false>(target, a, b, c, width, function);
    case 2: return loop_of<false, true, false>(target, a, b, c, width, function);
    case 3: return loop_of<true, true, false>(target, a, b, c, width, function);
    case 4: return loop_of<false, false, true>(target, a, b, c, width, function);
    case 5: return loop_of<true, false, true>(target, a, b, c, width, function);
    case 6: return loop_of<false, true, true>(target, a, b, c, width, function);
    default: return loop_of<false, false, false>(target, a, b, c, width, function);
  }
}

template <class Real>
COSMATI_INLINE void execute(Instruction const& instruction, Lane<Real> const* values, Real* t,
                            int any_width) {
  namespace math = vector_math;
  int const w = any_width & -lane_width;  // tells the compiler that there is no remainder
  Lane<Real> const a = values[instruction.input[0]];
  Lane<Real> const b = instruction.input[1] >= 0 ? values[instruction.input[1]] : a;
  Lane<Real> const c = instruction.input[2] >= 0 ? values[instruction.input[2]] : a;
  constexpr Real one = 1, zero = 0;
  switch (instruction.op) {
    case Op::constant:
    case Op::accumulator:
    case Op::source:
    case Op::scalar:
    case Op::operand:
    case Op::greater:
    case Op::greater_equal:
    case Op::clamp: return;
    case Op::negate: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return -x; });
    case Op::add: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x + y; });
    case Op::subtract: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x - y; });
    case Op::multiply:
      if (instruction.input[2] >= 0)
        return loop(t, a, b, c, w, [](Real x, Real y, Real z) COSMATI_LAMBDA { return x * y + z; });
      return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x * y; });
    case Op::divide: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x / y; });
    case Op::less: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x < y ? one : zero; });
    case Op::less_equal:
      return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x <= y ? one : zero; });
    case Op::equal:
      return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x == y ? one : zero; });
    case Op::not_equal:
      return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return x != y ? one : zero; });
    case Op::select:
      return loop(t, a, b, c, w, [](Real x, Real y, Real z) COSMATI_LAMBDA { return x != 0 ? y : z; });
    case Op::min: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return math::minimum(x, y); });
    case Op::max: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return math::maximum(x, y); });
    case Op::abs: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::absolute(x); });
    case Op::sqrt: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::square_root(x); });
    case Op::rsqrt: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return one / math::square_root(x); });
    case Op::exp: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::exp(x); });
    case Op::log: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::log(x); });
    case Op::tanh: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::tanh(x); });
    case Op::sigmoid: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::sigmoid(x); });
    case Op::relu: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return zero > x ? zero : x; });
    case Op::leaky_relu:
      return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return math::leaky_relu(x, y); });
    case Op::elu: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return math::elu(x, y); });
    case Op::gelu: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::gelu(x); });
    case Op::gelu_tanh: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::gelu_tanh(x); });
    case Op::silu: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::silu(x); });
    case Op::round: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::round(x); });
    case Op::erf: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::erf(x); });
    case Op::normal_cdf: return loop(t, a, w, [](Real x) COSMATI_LAMBDA { return math::normal_cdf(x); });
    case Op::pow: return loop(t, a, b, w, [](Real x, Real y) COSMATI_LAMBDA { return math::pow(x, y); });
  }
}

template <class Real>
void execute_baseline(Instruction const& instruction, Lane<Real> const* values, Real* target, int width) {
  execute(instruction, values, target, width);
}

#if COSMATI_HAS_LEVELS
template <class Real>
__attribute__((target("arch=x86-64-v3"))) void execute_v3(Instruction const& instruction,
                                                          Lane<Real> const* values, Real* target, int width) {
  execute(instruction, values, target, width);
}

template <class Real>
__attribute__((target(COSMATI_V4))) void execute_v4(Instruction const& instruction, Lane<Real> const* values,
                                                    Real* target, int width) {
  execute(instruction, values, target, width);
}
#endif

}  // namespace

template <class Real>
Execute<Real> execute_at([[maybe_unused]] VectorLevel level) {
#if COSMATI_HAS_LEVELS
  if (level == VectorLevel::v4) return execute_v4<Real>;
  if (level == VectorLevel::v3) return execute_v3<Real>;
#endif
  return execute_baseline<Real>;
}

template Execute<float> execute_at<float>(VectorLevel);
template Execute<double> execute_at<double>(VectorLevel);

}  // namespace detail

}  // namespace cosmati::epilogue
