// Operations that touch each element once: add and scale, dropout, transform.
#include "cosmati/core/philox.h"
#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {

// y = alpha*a + beta*b
template <>
void run(AddProblem const& problem, AddProblem::Arguments const& arguments) {
  Input const a(problem.a, arguments.a);
  Input const b(problem.b, arguments.b);
  Output const y(problem.y, arguments.y);
  bool const two = problem.b.present();
  for_each_index(y.shape(), [&](Position const& at) {
    y(at) = problem.alpha * a(at) + (two ? problem.beta * b(at) : 0);
  });
}

// y[i] = kept(i) ? x[i] / (1 - probability) : 0   (Srivastava et al. 2014, scaled at training time)
template <>
void run(DropoutProblem const& problem, DropoutProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  DropoutMask const mask(problem.probability, problem.seed, arguments.step);
  unsigned long long i = 0;
  for_each_index(x.shape(), [&](Position const& at) {
    y(at) = mask.keeps(i++) ? x(at) / (1 - problem.probability) : 0;
  });
}

// y = x
template <>
void run(TransformProblem const& problem, TransformProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  for_each_index(x.shape(), [&](Position const& at) { y(at) = x(at); });
}

}  // namespace cosmati::reference
