// The epilogue of a matrix product or convolution, applied to one element of the result.
#pragma once
#include <span>
#include <string_view>

#include "cosmati/ops/epilogue.h"
#include "reference/elements.h"

namespace cosmati::reference {

class ElementEpilogue {
 public:
  // `indices` names the dimensions of the result, e.g. (batch, m, n) or (n, k, p, q). Throws
  // Error(bad_request) if an argument of the expression is missing.
  ElementEpilogue(Epilogue const& epilogue, std::span<std::string_view const> indices,
                  std::span<void const* const> operands, std::span<double const> scalars,
                  std::span<void* const> stores);

  // Returns the value of the result at `at`, and writes the extra outputs.
  double operator()(double accumulator, double source, Position const& at) const;

 private:
  Epilogue const& epilogue_;
  int rank_;
  std::span<void const* const> operands_;
  std::span<double const> scalars_;
  std::span<void* const> stores_;
  Index step_[max_epilogue_operands][max_rank] =
      {};  // strides of each operand along the indices of the result
};

}  // namespace cosmati::reference
