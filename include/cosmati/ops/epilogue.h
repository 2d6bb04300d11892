// The epilogue of a GEMM or convolution problem: the expression applied to the accumulator before it is
// stored.
#pragma once
#include <vector>

#include "cosmati/epilogue/expression.h"
#include "cosmati/ops/tensor.h"

namespace cosmati {

// The maximum number of operands, scalars and stores of one expression, in addition to acc and c.
inline constexpr int max_epilogue_operands = 32;
inline constexpr int max_epilogue_stores = 8;

// An expression and the tensors bound to its names. Operand i belongs to expression.operands()[i]; its layout
// has one dimension per index letter, in the order written in the expression. The layout of store i has the
// dimensions of the result.
struct Epilogue {
  epilogue::Expression expression;
  std::vector<TensorDescription> operands;
  std::vector<TensorDescription> stores;  // additional outputs with the shape of the result
};

}  // namespace cosmati
