// What problems promise of their arrays' addresses.
#pragma once
#include "cosmati/ops/tensor.h"

namespace cosmati::testing {

// The problem with arrays that lie at any multiple of their elements' size.
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
