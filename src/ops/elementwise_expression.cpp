// Validation of expressions over elements.
#include "cosmati/ops/elementwise_expression.h"

#include <fmt/format.h>

#include "src/ops/check.h"

namespace cosmati {

std::span<std::string_view const> elementwise_indices(int rank) {
  static constexpr std::string_view one[] = {"i"}, two[] = {"m", "n"}, three[] = {"batch", "m", "n"},
                                    four[] = {"n", "c", "h", "w"}, five[] = {"n", "c", "d", "h", "w"};
  switch (rank) {
    case 1: return one;
    case 2: return two;
    case 3: return three;
    case 4: return four;
    case 5: return five;
    default: return {};
  }
}

void validate(ElementwiseProblem const& problem) {
  char const* const operation = "elementwise";
  Named const x{"x", problem.x}, y{"y", problem.y};
  check_tensors(operation, problem);
  check_rank(operation, x, 1, 5);
  check_same_shape(operation, y, x);
  check_epilogue(operation, problem.epilogue, elementwise_indices(problem.x.layout.rank()), y, false);
  auto const& expression = problem.epilogue.expression;
  auto const limit = [&](char const* what, std::size_t count, int maximum) {
    if (count > static_cast<std::size_t>(maximum))
      refuse(operation, fmt::format("the expression names {} {}; at most {} allowed", count, what, maximum));
  };
  limit("operands", expression.operands().size(), max_elementwise_operands);
  limit("stores", expression.stores().size(), max_elementwise_stores);
  limit("scalars", expression.scalars().size(), 12);
}

}  // namespace cosmati
