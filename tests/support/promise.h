// The alignment that problems promise.
#pragma once
#include "cosmati/ops/tensor.h"

namespace cosmati::testing {

// The problem with arrays aligned only to their element size.
template <class Problem>
Problem unaligned(Problem problem) {
  auto const promise = [](TensorDescription& tensor) { tensor.alignment = size_of(tensor.type); };
  Problem::visit_tensors(problem,
                         [&](char const*, auto, TensorDescription& tensor, auto) { promise(tensor); });
  if constexpr (requires { problem.epilogue.operands; })
    for (TensorDescription& operand : problem.epilogue.operands) promise(operand);
  return problem;
}

}  // namespace cosmati::testing
