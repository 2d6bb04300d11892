// Prints an epilogue as source text that compiles as CUDA C++ and as host C++.
#pragma once
#include <string>

#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

// Returns the body of
// Real epilogue(Real acc, Real c, Real const* scalar, Real const* operand, Real* store) { ... } where Real is
// float or double; scalar, operand and store are indexed by slot, with constants only. It calls abs as fabs,
// and rint, sqrt, exp, expm1, log, tanh, erf, erfc and pow, unqualified: CUDA has these overloads built in,
// and host code imports std's. No name from the expression's text appears in it. With `coarse`, for 16-bit
// results, exp and gelu become exponential and coarse_gelu of primitive/math.h.
std::string to_cuda(Expression const& expression, bool coarse = false);

}  // namespace cosmati::epilogue
