// The loops of local response normalization over the arrays of one block, in float and in double.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati::cpu {

// Exponents that are computed by roots and divisions.
enum class LrnExponent : unsigned char { half, three_quarters, one, any };

inline bool lrn_is_one_pass(LrnExponent exponent, Index terms) {
  return exponent != LrnExponent::any && (terms == 3 || terms == 5);
}

inline LrnExponent lrn_exponent(double beta) {
  if (beta == 0.75) return LrnExponent::three_quarters;
  if (beta == 0.5) return LrnExponent::half;
  return beta == 1 ? LrnExponent::one : LrnExponent::any;
}

#define COSMATI_LRN_LOOPS(Real)                                                                              \
  /* squares[i] = x[i]^2 */                                                                                  \
  void lrn_squares(Real const* x, Real* squares, Index count);                                               \
  /* sums[i] = sum of values[i + j * step] over j in [0, terms) */                                           \
  void lrn_window_sums(Real const* values, Index step, Index terms, Real* sums, Index count);                \
  /* bases[i] = k + factor * sums[i]; false if one of them is outside the safe range of float,               \
     1e-30 to 1e37, or NaN */                                                                                \
  bool lrn_bases(Real const* sums, Real k, Real factor, Real* bases, Index count);                           \
  /* powers[i] = bases[i]^-beta; the exponent is not `any` */                                                \
  void lrn_powers(LrnExponent exponent, Real const* bases, Real* powers, Index count);                       \
  /* All of these in one pass, for windows of 3 or 5 terms and an exponent that is not `any`: y[i] =         \
     x[i + before * step] * base^-beta, whose base is of the window that begins at x[i]; false as above */   \
  bool lrn_forward(LrnExponent exponent, Real const* x, Index step, Index terms, Index before, Real k,       \
                   Real factor, Real* y, Index count);                                                       \
  void lrn_products(Real const* x, Real const* powers, Real* y, Index count);                                \
  /* parts[i] = dy[i] * x[i] * powers[i] / bases[i] */                                                       \
  void lrn_gradient_parts(Real const* dy, Real const* x, Real const* powers, Real const* bases, Real* parts, \
                          Index count);                                                                      \
  /* sums[i] = dy[i] * powers[i] - factor * x[i] * sums[i]; false if one of them is not finite */            \
  bool lrn_gradients(Real const* dy, Real const* powers, Real const* x, Real factor, Real* sums, Index count);
COSMATI_LRN_LOOPS(float)
COSMATI_LRN_LOOPS(double)
#undef COSMATI_LRN_LOOPS

}  // namespace cosmati::cpu
