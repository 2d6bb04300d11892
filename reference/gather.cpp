// Gathers rows of a table in any order.
#include <string>

#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {

// y[n, f] = scale * x[order[n], f] + shift
template <>
void run(GatherProblem const& problem, GatherProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x), order(problem.order, arguments.order);
  Output const y(problem.y, arguments.y);
  Index const rows = problem.x.extent(0);
  for (Index n = 0; n < problem.y.extent(0); ++n) {
    Index const row = order.integer(n);
    if (row < 0 || row >= rows)
      throw Error(ErrorCode::bad_request, "gather: order[" + std::to_string(n) + "] is " +
                                              std::to_string(row) + "; valid values: 0 to " +
                                              std::to_string(rows - 1));
    for (Index f = 0; f < problem.y.extent(1); ++f) y(n, f) = problem.scale * x(row, f) + problem.shift;
  }
}

}  // namespace cosmati::reference
