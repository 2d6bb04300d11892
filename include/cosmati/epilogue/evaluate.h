// The reference evaluation of an epilogue for one element, in double. NaN: arithmetic and functions of a NaN
// give NaN, also relu, leaky_relu, min, max and clamp (which IEEE's fmin and fmax would drop); pow(1, NaN)
// and pow(NaN, 0) are 1 as in C. Comparisons with NaN give 0, but != gives 1, so select(NaN, a, b) is a.
// silu, gelu and gelu_tanh of minus infinity (times 0) are NaN. A scalar of 0 times acc or c is 0 even if the
// other factor is NaN or infinite, like alpha and beta in BLAS (docs/nonfinite.md).
#pragma once
#include <span>

#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

// The values of one element; scalars, operands and stores in the order of the expression's lists.
struct Inputs {
  double accumulator = 0;
  double source = 0;
  std::span<double const> scalars;
  std::span<double const> operands;
  std::span<double> stores;  // written
};

// The value of the result. Throws Error(bad_request) if a span is shorter than the expression's list.
double evaluate(Expression const& expression, Inputs const& inputs);

}  // namespace cosmati::epilogue
