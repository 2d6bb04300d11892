// Optimizer steps: stochastic gradient descent with momentum (Polyak 1964; Nesterov's as in Sutskever et al.
// 2013) and Adam (Kingma and Ba 2015, algorithm 1).
#include <cmath>

#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {
namespace {

// velocity = momentum*velocity + g; parameter -= rate * (nesterov ? g + momentum*velocity : velocity)
void sgd(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments, double factor) {
  Output const parameter(problem.parameter, arguments.parameter);
  Input const gradient(problem.gradient, arguments.gradient);
  Output const velocity(problem.state, arguments.velocity);
  bool const stateful = problem.state.present();
  double const rate = step_numbers(problem, arguments).rate;
  for_each_index(parameter.shape(), [&](Position const& at) {
    double const g = factor * gradient(at) + problem.weight_decay * parameter(at);
    double const v = stateful ? problem.momentum * velocity(at) + g : g;
    if (stateful) velocity(at) = v;
    parameter(at) = parameter(at) - rate * (problem.nesterov ? g + problem.momentum * v : v);
  });
}

// first = beta1*first + (1-beta1)*g; second = beta2*second + (1-beta2)*g*g
// parameter -= rate * (first/(1-beta1^t)) / (sqrt(second/(1-beta2^t)) + epsilon)
void adam(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments, double factor) {
  Output const parameter(problem.parameter, arguments.parameter);
  Input const gradient(problem.gradient, arguments.gradient);
  Output const first(problem.state, arguments.velocity);
  Output const second(problem.state, arguments.second);
  auto const step = step_numbers(problem, arguments);
  for_each_index(parameter.shape(), [&](Position const& at) {
    double const g = factor * gradient(at) + problem.weight_decay * parameter(at);
    double const m = problem.beta1 * first(at) + (1 - problem.beta1) * g;
    double const v = problem.beta2 * second(at) + (1 - problem.beta2) * g * g;
    first(at) = m;
    second(at) = v;
    parameter(at) = parameter(at) -
                    step.rate * (m / step.correction1) / (std::sqrt(v / step.correction2) + problem.epsilon);
  });
}

}  // namespace

template <>
void run(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments) {
  auto const factor = gradient_factor(problem, arguments);
  if (!factor) return;
  problem.kind == OptimizerKind::adam ? adam(problem, arguments, *factor) : sgd(problem, arguments, *factor);
}

}  // namespace cosmati::reference
