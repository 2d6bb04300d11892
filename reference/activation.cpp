// Activation functions and their derivatives. At 0, relu, leaky_relu and elu have their left derivatives 0,
// alpha and alpha, as in PyTorch.
// gelu: Hendrycks and Gimpel 2016; silu: Elfwing et al. 2017; scaled tanh: LeCun et al. 1998, appendix A.
#include <cmath>
#include <numbers>

#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// 1 - tanh(x)^2, without subtracting nearly equal numbers
double tanh_derivative(double x) { return 1 / (std::cosh(x) * std::cosh(x)); }

// The cumulative normal distribution by erfc, which keeps its relative accuracy for very negative x.
double normal_cumulative(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double normal_density(double x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// (1 + tanh u) / 2 = sigmoid(2u) with u = sqrt(2/pi) * (x + 0.044715 x^3)
double gelu_tanh_gate(double x) {
  double const u = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x);
  return sigmoid(2 * u);
}

double value(ActivationProblem const& problem, double x) {
  double const alpha = problem.alpha, beta = problem.beta;
  switch (problem.function) {
    case ActivationFunction::relu: return x < 0 ? 0 : x;
    case ActivationFunction::leaky_relu: return x < 0 ? alpha * x : x;
    case ActivationFunction::elu: return x < 0 ? alpha * std::expm1(x) : x;
    case ActivationFunction::sigmoid: return sigmoid(x);
    case ActivationFunction::tanh: return std::tanh(x);
    case ActivationFunction::scaled_tanh: return alpha * std::tanh(beta * x);
    case ActivationFunction::gelu: return x * normal_cumulative(x);
    case ActivationFunction::gelu_tanh: return x * gelu_tanh_gate(x);
    case ActivationFunction::silu: break;
  }
  return x * sigmoid(x);
}

double derivative(ActivationProblem const& problem, double x) {
  double const alpha = problem.alpha, beta = problem.beta;
  if (std::isnan(x)) return x;
  switch (problem.function) {
    case ActivationFunction::relu: return x > 0 ? 1 : 0;
    case ActivationFunction::leaky_relu: return x > 0 ? 1 : alpha;
    case ActivationFunction::elu: return x > 0 ? 1 : alpha * std::exp(x);
    case ActivationFunction::sigmoid: return sigmoid(x) * sigmoid(-x);
    case ActivationFunction::tanh: return tanh_derivative(x);
    case ActivationFunction::scaled_tanh: return alpha * beta * tanh_derivative(beta * x);
    case ActivationFunction::gelu: return normal_cumulative(x) + x * normal_density(x);
    case ActivationFunction::gelu_tanh: {
      double const gate = gelu_tanh_gate(x);
      double const du = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (1 + 3 * 0.044715 * x * x);
      return gate + x * 2 * gate * (1 - gate) * du;
    }
    case ActivationFunction::silu: break;
  }
  return sigmoid(x) * (1 + x * sigmoid(-x));
}

}  // namespace

template <>
void run(ActivationProblem const& problem, ActivationProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  if (problem.direction == Direction::forward) {
    Output const y(problem.y, arguments.y);
    for_each_index(x.shape(), [&](Position const& at) { y(at) = value(problem, x(at)); });
  } else {
    Input const dy(problem.y, arguments.dy);
    Output const dx(problem.dx, arguments.dx);
    for_each_index(x.shape(), [&](Position const& at) { dx(at) = dy(at) * derivative(problem, x(at)); });
  }
}

}  // namespace cosmati::reference
