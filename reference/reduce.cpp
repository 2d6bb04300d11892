// Reduction over any axes, namely those along which the result has extent 1.
#include <cmath>

#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {
namespace {

double initial(ReduceOperation operation) {
  if (operation == ReduceOperation::max) return -HUGE_VAL;
  return operation == ReduceOperation::min ? HUGE_VAL : 0;
}

// Combines the result so far with one more value. NaN is kept.
double joined(ReduceOperation operation, double so_far, double value) {
  switch (operation) {
    case ReduceOperation::max: return value > so_far || std::isnan(value) ? value : so_far;
    case ReduceOperation::min: return value < so_far || std::isnan(value) ? value : so_far;
    case ReduceOperation::sum_of_squares: return so_far + value * value;
    case ReduceOperation::sum:
    case ReduceOperation::mean: break;
  }
  return so_far + value;
}

}  // namespace

template <>
void run(ReduceProblem const& problem, ReduceProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  Shape reduced = x.shape();  // the part of x that one element of y is computed from
  for (int d = 0; d < reduced.rank; ++d)
    if (y.extent(d) != 1) reduced[d] = 1;
  double const count = static_cast<double>(reduced.size());
  for_each_index(y.shape(), [&](Position const& at) {
    double result = initial(problem.operation);
    for_each_index(reduced, [&](Position position) {
      for (int d = 0; d < reduced.rank; ++d) position[d] += at[d];
      result = joined(problem.operation, result, x(position));
    });
    y(at) = problem.operation == ReduceOperation::mean ? result / count : result;
  });
}

}  // namespace cosmati::reference
