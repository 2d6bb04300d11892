// Activation functions and their derivatives as expressions.
#include "cosmati/ops/activation.h"

#include "src/backend/cpu/own.h"
#include "src/backend/cpu/pointwise_kernel.h"

namespace cosmati::cpu {
namespace {

char const* forward_text(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::relu: return "relu(acc)";
    case ActivationFunction::leaky_relu: return "select(acc < 0, alpha * acc, acc)";
    case ActivationFunction::elu: return "elu(acc, alpha)";
    case ActivationFunction::sigmoid: return "sigmoid(acc)";
    case ActivationFunction::tanh: return "tanh(acc)";
    case ActivationFunction::scaled_tanh: return "alpha * tanh(beta * acc)";
    case ActivationFunction::gelu: return "gelu(acc)";
    case ActivationFunction::gelu_tanh: return "gelu_tanh(acc)";
    case ActivationFunction::silu: break;
  }
  return "silu(acc)";
}

// acc is x, c is dy. relu and the select on acc itself propagate a NaN; 1 - tanh(u)^2 is written as 4
// sigmoid(2u) sigmoid(-2u), which does not cancel where tanh is close to 1.
char const* backward_text(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::relu: return "c * select(acc > 0, 1, relu(acc))";
    case ActivationFunction::leaky_relu: return "c * select(acc > 0, 1, select(acc == acc, alpha, acc))";
    case ActivationFunction::elu: return "c * select(acc > 0, 1, alpha * exp(acc))";
    case ActivationFunction::sigmoid: return "c * (sigmoid(acc) * sigmoid(-acc))";
    case ActivationFunction::tanh: return "c * (4 * sigmoid(2 * acc) * sigmoid(-2 * acc))";
    case ActivationFunction::scaled_tanh:
      return "let u = 2 * beta * acc; c * (4 * alpha * beta * (sigmoid(u) * sigmoid(-u)))";
    case ActivationFunction::gelu:
      return "c * (0.5 * (1 + erf(acc * 0.70710678118654752440)) "
             "+ acc * exp(-0.5 * acc * acc) * 0.39894228040143267794)";
    case ActivationFunction::gelu_tanh:
      return "let v = 1.59576912160573071176 * (acc + 0.044715 * acc * acc * acc); let gate = sigmoid(v);"
             "c * (gate + acc * gate * sigmoid(-v) * 1.59576912160573071176 * (1 + 0.134145 * acc * acc))";
    case ActivationFunction::silu: break;
  }
  return "c * (sigmoid(acc) * (1 + acc * sigmoid(-acc)))";
}

PointwiseRecipe<ActivationProblem> build(ActivationProblem const& problem) {
  using Arguments = ActivationProblem::Arguments;
  PointwiseRecipe<ActivationProblem> recipe;
  bool const forward = problem.direction == Direction::forward;
  auto const text = forward ? forward_text(problem.function) : backward_text(problem.function);
  recipe.set_expression(text, {{"alpha", problem.alpha}, {"beta", problem.beta}});
  recipe.problem.accumulator = problem.x;
  recipe.first = &Arguments::x;
  recipe.problem.result = forward ? problem.y : problem.dx;
  recipe.result = forward ? &Arguments::y : &Arguments::dx;
  if (!forward) {
    recipe.problem.source = problem.y;
    recipe.second = &Arguments::dy;
  }
  recipe.problem.in_double = needs_double(recipe.problem.accumulator, recipe.problem.source);
  return recipe;
}

}  // namespace

template <>
Candidate<ActivationProblem> own_candidate() {
  return pointwise_candidate<ActivationProblem, build>("vectorized");
}

}  // namespace cosmati::cpu
