// Convolution problems of tests.
#pragma once
#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::test {

// Sets the epilogue, with operands of f32 (one per channel of the result, or of its shape) and stores like
// the result.
inline void set_epilogue(ConvolutionProblem& p, char const* text) {
  bool const forward = p.direction == ConvolutionDirection::forward;
  auto const& result = forward ? p.y : p.x;
  p.epilogue.expression = epilogue::parse(text, epilogue::convolution_indices);
  for (auto const& operand : p.epilogue.expression.operands())
    p.epilogue.operands.push_back(operand.indices.size() == 1
                                      ? describe(DataType::f32, Shape{result.extent(1)})
                                      : describe(DataType::f32, result.shape()));
  for (std::size_t i = 0; i < p.epilogue.expression.stores().size(); ++i) p.epilogue.stores.push_back(result);
}

}  // namespace cosmati::test
