// Names, default parameters and validation of activation functions.
#include "cosmati/ops/activation.h"

#include "src/ops/check.h"
#include "src/ops/names.h"

namespace cosmati {

char const* name_of(ActivationFunction function) {
  constexpr char const* names[activation_function_count] = {
      "relu", "leaky_relu", "elu", "sigmoid", "tanh", "scaled_tanh", "gelu", "gelu_tanh", "silu"};
  return names[static_cast<int>(function)];
}

ActivationFunction parse_activation_function(std::string const& name) {
  return parse_name<ActivationFunction>("activation function", name, activation_function_count,
                                        "valid functions");
}

double default_alpha(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::leaky_relu: return 0.01;
    case ActivationFunction::elu: return 1;
    case ActivationFunction::scaled_tanh: return 1.7159;
    default: return 0;
  }
}

double default_beta(ActivationFunction function) {
  return function == ActivationFunction::scaled_tanh ? 2.0 / 3.0 : 0;
}

void validate(ActivationProblem const& problem) {
  bool const forward = problem.direction == Direction::forward;
  char const* const operation = forward ? "activation forward" : "activation backward";
  check_tensors(operation, problem);
  check_same_shape(operation, {forward ? "y" : "dy", problem.y}, {"x", problem.x});
  if (!forward) check_same_shape(operation, {"dx", problem.dx}, {"x", problem.x});
  check_finite(operation, "alpha", problem.alpha);
  check_finite(operation, "beta", problem.beta);
}

}  // namespace cosmati
