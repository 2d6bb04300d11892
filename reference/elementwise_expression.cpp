// y = expression(x, operands...), element by element.
#include "reference/elements.h"
#include "reference/epilogue.h"
#include "reference/reference.h"

namespace cosmati::reference {

template <>
void run(ElementwiseProblem const& problem, ElementwiseProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  ElementEpilogue const expression(problem.epilogue, elementwise_indices(problem.x.layout.rank()),
                                   arguments.operands, arguments.scalars, arguments.stores);
  for_each_index(y.shape(), [&](Position const& at) { y(at) = expression(x(at), 0, at); });
}

}  // namespace cosmati::reference
