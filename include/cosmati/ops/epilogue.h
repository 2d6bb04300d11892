// The part of a GEMM or convolution problem that says what becomes of the accumulator before it is stored.
#pragma once
#include <vector>

#include "cosmati/epilogue/expression.h"
#include "cosmati/ops/tensor.h"

namespace cosmati {

// What one expression may read and write beside acc and c.
inline constexpr int max_epilogue_operands = 32;
inline constexpr int max_epilogue_stores = 8;

// An expression and what its names are bound to. Operand i of the problem is operand i of
// expression.operands(); its layout has one dimension for each index letter, in the order in which the
// expression writes them; the layout of store i, like that of the result, one for each of the result's
// dimensions.
struct Epilogue {
  epilogue::Expression expression;
  std::vector<TensorDescription> operands;
  std::vector<TensorDescription> stores;  // extra outputs, of the shape of the result
};

}  // namespace cosmati
