// One operation on doubles, shared by constant folding and the reference.
#pragma once
#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

double apply(Op op, double a, double b, double c);  // `op` is not a leaf

// Returns the node of the scalar if `node` is scalar * acc or scalar * c, in either order; otherwise -1. Such
// a product is 0 if the scalar is 0, even if the other factor is infinite or NaN, like alpha and beta of
// BLAS.
inline int scalar_of_scaled_input(Expression const& expression, Node const& node) {
  if (node.op != Op::multiply) return -1;
  auto const op = [&](int i) { return expression.nodes()[static_cast<std::size_t>(i)].op; };
  auto const [a, b, c] = node.operand;
  auto const is_input = [&](int i) { return op(i) == Op::accumulator || op(i) == Op::source; };
  if (op(a) == Op::scalar && is_input(b)) return a;
  return op(b) == Op::scalar && is_input(a) ? b : -1;
}

}  // namespace cosmati::epilogue
