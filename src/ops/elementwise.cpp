// Validation of add, dropout, transform and reduce.
#include "cosmati/ops/elementwise.h"

#include <fmt/format.h>

#include "src/ops/check.h"
#include "src/ops/names.h"

namespace cosmati {

void validate(AddProblem const& problem) {
  Named const a{"a", problem.a};
  check_tensors("add", problem);
  if (problem.b.present()) check_same_shape("add", {"b", problem.b}, a);
  check_same_shape("add", {"y", problem.y}, a);
  check_finite("add", "alpha", problem.alpha);
  check_finite("add", "beta", problem.beta);
}

void validate(DropoutProblem const& problem) {
  check_tensors("dropout", problem);
  check_same_shape("dropout", {"y", problem.y}, {"x", problem.x});
  if (!(problem.probability >= 0 && problem.probability <= 1))
    refuse("dropout", fmt::format("the probability is {}; it must be from 0 to 1", problem.probability));
}

void validate(TransformProblem const& problem) {
  check_tensors("transform", problem);
  check_same_shape("transform", {"y", problem.y}, {"x", problem.x});
}

char const* name_of(ReduceOperation operation) {
  constexpr char const* names[reduce_operation_count] = {"sum", "mean", "max", "min", "sum-of-squares"};
  return names[static_cast<int>(operation)];
}

ReduceOperation parse_reduce_operation(std::string const& name) {
  return parse_name<ReduceOperation>("reduction", name, reduce_operation_count);
}

void validate(ReduceProblem const& problem) {
  TensorDescription const& x = problem.x;
  TensorDescription const& y = problem.y;
  check_tensors("reduce", problem);
  if (x.layout.rank() != y.layout.rank())
    refuse("reduce", fmt::format("x is {}, y is {}; their ranks must be equal", to_string(x), to_string(y)));
  bool const defined_on_nothing =
      problem.operation == ReduceOperation::sum || problem.operation == ReduceOperation::sum_of_squares;
  for (int d = 0; d < x.layout.rank(); ++d) {
    if (y.extent(d) != 1 && y.extent(d) != x.extent(d))
      refuse("reduce", fmt::format("x is {}, y is {}; extent {} of y must be 1 or {}", to_string(x),
                                   to_string(y), d, x.extent(d)));
    if (y.extent(d) == 1 && x.extent(d) == 0 && y.layout.size() > 0 && !defined_on_nothing)
      refuse("reduce",
             fmt::format(
                 "x is {}: {} over zero elements is undefined; only sum and sum-of-squares are defined there",
                 to_string(x), name_of(problem.operation)));
  }
}

}  // namespace cosmati
