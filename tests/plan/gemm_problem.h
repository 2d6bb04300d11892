// Matrix products for the planner's tests.
#pragma once
#include <string>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/gemm.h"

namespace cosmati::testing {

// (1, rows, columns), column-major as in BLAS if `letter` is 'n', row-major if it is 't'.
inline TensorDescription matrix(DataType type, Index rows, Index columns, char letter, int alignment = 16) {
  TensorDescription description{type, letter == 'n' ? Layout{{1, rows, columns}, {rows * columns, 1, rows}}
                                                    : row_major({1, rows, columns})};
  description.alignment = alignment;
  return description;
}

inline GemmProblem product(DataType type, DataType result, Index m, Index n, Index k,
                           std::string const& letters, std::string const& expression = "acc") {
  GemmProblem problem;
  problem.a = matrix(type, m, k, letters[0]);
  problem.b = matrix(type, k, n, letters[1]);
  problem.d = matrix(result, m, n, 'n');
  problem.epilogue.expression = epilogue::parse(expression);
  for (auto const& operand : problem.epilogue.expression.operands())
    problem.epilogue.operands.push_back(operand.indices.size() == 1
                                            ? describe(DataType::f32, {operand.indices[0] == "m" ? m : n})
                                            : TensorDescription{result, {{m, n}, {1, m}}});
  for (std::size_t i = 0; i < problem.epilogue.expression.stores().size(); ++i)
    problem.epilogue.stores.push_back(problem.d);
  if (problem.epilogue.expression.uses_source()) problem.c = problem.d;
  return problem;
}

// The product as one of `count`, which share the operand a or b, or none.
inline GemmProblem batch_sharing(char operand, Index count, GemmProblem problem) {
  auto const repeat = [count](TensorDescription& matrices, bool shared) {
    Layout& layout = matrices.layout;
    layout.shape.extent[0] = count;
    layout.stride[0] = shared ? 0 : layout.shape.extent[1] * layout.shape.extent[2];
  };
  repeat(problem.a, operand == 'a');
  repeat(problem.b, operand == 'b');
  repeat(problem.d, false);
  return problem;
}

inline Device gpu_device(std::string const& name) {
  Device device;
  device.backend = Backend::cuda;
  device.gpu = describe_gpu(name);
  return device;
}

}  // namespace cosmati::testing
