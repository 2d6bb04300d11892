// Activation functions, element by element, and their derivatives.
#pragma once
#include <string>

#include "cosmati/ops/pooling.h"

namespace cosmati {

// relu max(x, 0); leaky_relu x < 0 ? alpha*x : x; elu x < 0 ? alpha*(exp(x) - 1) : x; sigmoid 1/(1 +
// exp(-x)); tanh; scaled_tanh alpha*tanh(beta*x), LeCun's 1.7159 tanh(2x/3) by default; gelu x*(1 +
// erf(x/sqrt 2))/2; gelu_tanh its tanh approximation; silu x*sigmoid(x). NaN stays NaN.
enum class ActivationFunction : unsigned char {
  relu,
  leaky_relu,
  elu,
  sigmoid,
  tanh,
  scaled_tanh,
  gelu,
  gelu_tanh,
  silu
};
inline constexpr int activation_function_count = 9;

char const* name_of(ActivationFunction function);
ActivationFunction parse_activation_function(
    std::string const& name);  // throws Error(bad_request) listing the valid names

// forward: y = f(x); backward: dx = dy * f'(x). At 0 and -0, f' is the left derivative: 0 for relu, alpha for
// leaky_relu and elu (PyTorch's convention). In place: y may be x, dx may be dy. All tensors have the same
// shape.
struct ActivationProblem {
  Direction direction = Direction::forward;
  ActivationFunction function = ActivationFunction::relu;
  double alpha = 0;  // see default_alpha, default_beta
  double beta = 0;
  TensorDescription x;
  TensorDescription y;  // y or dy
  TensorDescription dx;

  struct Arguments {
    void const* x = nullptr;
    void const* dy = nullptr;
    void* y = nullptr;
    void* dx = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    if (problem.direction == Direction::forward) {
      visit("y", Role::output, problem.y, &Arguments::y);
    } else {
      visit("dy", Role::input, problem.y, &Arguments::dy);
      visit("dx", Role::output, problem.dx, &Arguments::dx);
    }
  }
};

double default_alpha(ActivationFunction function);  // leaky_relu 0.01, elu 1, scaled_tanh 1.7159, else 0
double default_beta(ActivationFunction function);   // scaled_tanh 2/3, else 0

void validate(ActivationProblem const& problem);  // throws Error(bad_request)

}  // namespace cosmati
