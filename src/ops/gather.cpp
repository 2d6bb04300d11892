// Validation of gathers.
#include "cosmati/ops/gather.h"

#include <fmt/format.h>

#include "src/ops/check.h"

namespace cosmati {

void validate(GatherProblem const& problem) {
  char const* const operation = "gather";
  TensorDescription const &x = problem.x, &y = problem.y;
  check_tensors(operation, problem);
  for (auto const& [name, tensor] : {std::pair{"x", &x}, std::pair{"y", &y}}) {
    check_rank(operation, {name, *tensor}, 2);
    if (tensor->extent(1) > 1 && tensor->layout.stride[1] != 1)
      refuse(operation,
             fmt::format("{} is {}; the elements of its rows must be contiguous", name, to_string(*tensor)));
  }
  check_type(operation, {"order", problem.order}, {DataType::s32});
  check_shape(operation, {"order", problem.order}, Shape(y.extent(0)));
  if (x.extent(1) != y.extent(1))
    refuse(operation,
           fmt::format("x is {}, y is {}; their rows must have the same length", to_string(x), to_string(y)));
  if (x.extent(0) == 0 && y.extent(0) > 0)
    refuse(operation, fmt::format("x is {}: it has no rows", to_string(x)));
  check_finite(operation, "scale", problem.scale);
  check_finite(operation, "shift", problem.shift);
}

}  // namespace cosmati
