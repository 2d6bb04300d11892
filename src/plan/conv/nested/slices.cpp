// Restricts tensors to slices, and advances pointers from slice to slice.
#include "src/plan/conv/nested/slices.h"

#include <algorithm>

#include "src/plan/conv/nested/inner_plans.h"

namespace cosmati::plan {

int dimension_of_operand(ConvolutionProblem const& problem, std::size_t operand, char const* index) {
  auto const& indices = problem.epilogue.expression.operands()[operand].indices;
  auto const at = std::find(indices.begin(), indices.end(), index);
  return at == indices.end() ? -1 : static_cast<int>(at - indices.begin());
}

Index cut(TensorDescription& tensor, int dimension, Index step, Index count) {
  if (dimension < 0) return 0;
  Index const bytes = tensor.layout.stride[dimension] * step * size_of(tensor.type);
  tensor.layout.shape[dimension] = count;
  while (bytes % tensor.alignment != 0) tensor.alignment /= 2;
  return bytes;
}

SliceArguments::SliceArguments(ConvolutionProblem::Arguments const& all, SliceSteps const& steps, Index slice)
    : arguments(all) {
  arguments.x = moved(all.x, steps.x * slice);
  arguments.dx = moved(all.dx, steps.x * slice);
  arguments.w = moved(all.w, steps.w * slice);
  arguments.dw = moved(all.dw, steps.w * slice);
  arguments.y = moved(all.y, steps.y * slice);
  arguments.dy = moved(all.dy, steps.y * slice);
  for (std::size_t i = 0; i < steps.operands.size(); ++i)
    operands_[i] = moved(all.operands[i], steps.operands[i] * slice);
  for (std::size_t i = 0; i < steps.stores.size(); ++i)
    stores_[i] = moved(all.stores[i], steps.stores[i] * slice);
  arguments.operands = {operands_, steps.operands.size()};
  arguments.stores = {stores_, steps.stores.size()};
}

}  // namespace cosmati::plan
