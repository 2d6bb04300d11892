// The inner loops of LRN, for float and double, with clones for each instruction set.
#include "src/backend/cpu/lrn_loops.h"

#include <algorithm>
#include <cmath>

#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

template <int terms, class Real>
COSMATI_ALWAYS_INLINE void add_fixed(Real const* values, Index step, Real* sums, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) {
    Real sum = values[i];
    for (int j = 1; j < terms; ++j) sum += values[i + j * step];
    sums[i] = sum;
  }
}

template <class Real>
COSMATI_ALWAYS_INLINE void add_windows(Real const* values, Index step, Index terms, Real* sums, Index count) {
  if (terms == 3) return add_fixed<3>(values, step, sums, count);
  if (terms == 5) return add_fixed<5>(values, step, sums, count);
  constexpr Index piece = 256;
  for (Index first = 0; first < count; first += piece) {
    Index const last = std::min(first + piece, count);
    for (Index i = first; i < last; ++i) sums[i] = values[i];
    for (Index j = 1; j < terms; ++j) {
      COSMATI_INDEPENDENT
      for (Index i = first; i < last; ++i) sums[i] += values[i + j * step];
    }
  }
}

template <class Real>
COSMATI_ALWAYS_INLINE bool make_bases(Real const* sums, Real k, Real factor, Real* bases, Index count) {
  int outside = 0;
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) {
    Real const base = k + factor * sums[i];
    bases[i] = base;
    outside |= (base >= Real(1e-30) ? 0 : 1) | (base <= Real(1e37) ? 0 : 1);
  }
  return outside == 0;
}

template <LrnExponent exponent, class Real>
COSMATI_ALWAYS_INLINE Real raised(Real base) {
  if (exponent == LrnExponent::one) return 1 / base;
  Real const root = std::sqrt(base);
  return 1 / (exponent == LrnExponent::half ? root : root * std::sqrt(root));
}

template <LrnExponent exponent, class Real>
COSMATI_ALWAYS_INLINE void raise_all(Real const* bases, Real* powers, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) powers[i] = raised<exponent>(bases[i]);
}

template <class Real>
COSMATI_ALWAYS_INLINE void raise_bases(LrnExponent exponent, Real const* bases, Real* powers, Index count) {
  using enum LrnExponent;
  switch (exponent) {
    case half: return raise_all<half>(bases, powers, count);
    case three_quarters: return raise_all<three_quarters>(bases, powers, count);
    default: return raise_all<one>(bases, powers, count);
  }
}

template <int terms, LrnExponent exponent, class Real>
COSMATI_ALWAYS_INLINE bool normalize_fixed(Real const* x, Index step, Index before, Real k, Real factor,
                                           Real* y, Index count) {
  int outside = 0;
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) {
    Real sum = x[i] * x[i];
    for (int j = 1; j < terms; ++j) sum += x[i + j * step] * x[i + j * step];
    Real const base = k + factor * sum;
    y[i] = x[i + before * step] * raised<exponent>(base);
    outside |= (base >= Real(1e-30) ? 0 : 1) | (base <= Real(1e37) ? 0 : 1);
  }
  return outside == 0;
}

template <int terms, class Real>
COSMATI_ALWAYS_INLINE bool normalize_by(LrnExponent exponent, Real const* x, Index step, Index before, Real k,
                                        Real factor, Real* y, Index count) {
  using enum LrnExponent;
  switch (exponent) {
    case half: return normalize_fixed<terms, half>(x, step, before, k, factor, y, count);
    case one: return normalize_fixed<terms, one>(x, step, before, k, factor, y, count);
    default: return normalize_fixed<terms, three_quarters>(x, step, before, k, factor, y, count);
  }
}

template <class Real>
COSMATI_ALWAYS_INLINE bool normalize(LrnExponent exponent, Real const* x, Index step, Index terms,
                                     Index before, Real k, Real factor, Real* y, Index count) {
  return terms == 3 ? normalize_by<3>(exponent, x, step, before, k, factor, y, count)
                    : normalize_by<5>(exponent, x, step, before, k, factor, y, count);
}

template <class Real>
COSMATI_ALWAYS_INLINE void square_all(Real const* x, Real* squares, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) squares[i] = x[i] * x[i];
}

template <class Real>
COSMATI_ALWAYS_INLINE void multiply_all(Real const* x, Real const* powers, Real* y, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) y[i] = x[i] * powers[i];
}

template <class Real>
COSMATI_ALWAYS_INLINE void make_parts(Real const* dy, Real const* x, Real const* powers, Real const* bases,
                                      Real* parts, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) parts[i] = dy[i] * x[i] * powers[i] / bases[i];
}

template <class Real>
COSMATI_ALWAYS_INLINE bool make_gradients(Real const* dy, Real const* powers, Real const* x, Real factor,
                                          Real* sums, Index count) {
  int outside = 0;
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) {
    Real const dx = dy[i] * powers[i] - factor * x[i] * sums[i];
    sums[i] = dx;
    outside |= dx - dx == 0 ? 0 : 1;
  }
  return outside == 0;
}

}  // namespace

#define COSMATI_LRN_LOOPS(Real)                                                                              \
  void lrn_squares(Real const* x, Real* squares, Index count) {                                              \
    Clones<square_all<Real>>::call(x, squares, count);                                                       \
  }                                                                                                          \
  void lrn_window_sums(Real const* values, Index step, Index terms, Real* sums, Index count) {               \
    Clones<add_windows<Real>>::call(values, step, terms, sums, count);                                       \
  }                                                                                                          \
  bool lrn_bases(Real const* sums, Real k, Real factor, Real* bases, Index count) {                          \
    return Clones<make_bases<Real>>::call(sums, k, factor, bases, count);                                    \
  }                                                                                                          \
  void lrn_powers(LrnExponent exponent, Real const* bases, Real* powers, Index count) {                      \
    Clones<raise_bases<Real>>::call(exponent, bases, powers, count);                                         \
  }                                                                                                          \
  bool lrn_forward(LrnExponent exponent, Real const* x, Index step, Index terms, Index before, Real k,       \
                   Real factor, Real* y, Index count) {                                                      \
    return Clones<normalize<Real>>::call(exponent, x, step, terms, before, k, factor, y, count);             \
  }                                                                                                          \
  void lrn_products(Real const* x, Real const* powers, Real* y, Index count) {                               \
    Clones<multiply_all<Real>>::call(x, powers, y, count);                                                   \
  }                                                                                                          \
  void lrn_gradient_parts(Real const* dy, Real const* x, Real const* powers, Real const* bases, Real* parts, \
                          Index count) {                                                                     \
    Clones<make_parts<Real>>::call(dy, x, powers, bases, parts, count);                                      \
  }                                                                                                          \
  bool lrn_gradients(Real const* dy, Real const* powers, Real const* x, Real factor, Real* sums,             \
                     Index count) {                                                                          \
    return Clones<make_gradients<Real>>::call(dy, powers, x, factor, sums, count);                           \
  }
COSMATI_LRN_LOOPS(float)
COSMATI_LRN_LOOPS(double)
#undef COSMATI_LRN_LOOPS

}  // namespace cosmati::cpu
