// Activations, add, dropout, transforms, reductions and optimizer steps as formulas. The derivatives are
// those of reference/activation.cpp; all of them propagate a NaN.
#include <algorithm>
#include <cmath>

#include "cosmati/core/philox.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

char const* value_text(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::relu: return "relu(x[e])";
    case ActivationFunction::leaky_relu: return "leaky_relu(x[e], alpha)";
    case ActivationFunction::elu: return "elu(x[e], alpha)";
    case ActivationFunction::sigmoid: return "sigmoid(x[e])";
    case ActivationFunction::tanh: return "tanh(x[e])";
    case ActivationFunction::scaled_tanh: return "alpha * tanh(beta * x[e])";
    case ActivationFunction::gelu: return "gelu(x[e])";
    case ActivationFunction::gelu_tanh: return "gelu_tanh(x[e])";
    case ActivationFunction::silu: break;
  }
  return "silu(x[e])";
}

// 1 - tanh(u)^2 without cancellation: 4 e / (1 + e)^2 with e = exp(-2 |u|).
char const* derivative_text(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::relu: return "let d = select(x[e] > 0, 1, 0); ";
    case ActivationFunction::leaky_relu: return "let d = select(x[e] > 0, 1, alpha); ";
    case ActivationFunction::elu: return "let d = select(x[e] > 0, 1, alpha * exp(x[e])); ";
    case ActivationFunction::sigmoid: return "let d = sigmoid(x[e]) * sigmoid(-x[e]); ";
    case ActivationFunction::tanh:
      return "let f = exp(-2 * abs(x[e])); let d = 4 * f / ((1 + f) * (1 + f)); ";
    case ActivationFunction::scaled_tanh:
      return "let f = exp(-2 * abs(beta * x[e])); let d = alpha * beta * 4 * f / ((1 + f) * (1 + f)); ";
    case ActivationFunction::gelu:
      return "let d = normal_cdf(x[e]) + x[e] * exp(-0.5 * x[e] * x[e]) * 0.3989422804014327; ";
    case ActivationFunction::gelu_tanh:
      return "let u = 0.79788456080286536 * (x[e] + 0.044715 * x[e] * x[e] * x[e]); let g = sigmoid(2 * u); "
             "let d = g + x[e] * 2 * g * (1 - g) * 0.79788456080286536 * (1 + 0.134145 * x[e] * x[e]); ";
    case ActivationFunction::silu: break;
  }
  return "let d = sigmoid(x[e]) * (1 + x[e] * sigmoid(-x[e])); ";
}

}  // namespace

template <>
PrimitiveProgram lower(ActivationProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  bool const forward = problem.direction == Direction::forward;
  Formula formula;
  formula.constants = {{"alpha", problem.alpha}, {"beta", problem.beta}};
  StridedTensor const x = strided("x", problem.x, argument_named(problem, "x"));
  if (forward) {
    formula.text = value_text(problem.function);
    formula.result = "y";
    add_map(program, problem.x.shape(), formula, {x}, {strided("y", problem.y, argument_named(problem, "y"))},
            target);
  } else {
    formula.text = std::string(derivative_text(problem.function)) + "dy[e] * select(x[e] != x[e], x[e], d)";
    formula.result = "dx";
    add_map(program, problem.x.shape(), formula, {x, strided("dy", problem.y, argument_named(problem, "dy"))},
            {strided("dx", problem.dx, argument_named(problem, "dx"))}, target);
  }
  return program;
}

template <>
PrimitiveProgram lower(ElementwiseProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  auto const& expression = problem.epilogue.expression;
  auto const letters = elementwise_indices(problem.x.layout.rank());
  Formula formula;
  formula.parsed = &expression;
  formula.accumulator = "acc";  // a name that no operand can have
  formula.result = "acc";
  for (auto const& scalar : expression.scalars()) formula.scalars.push_back(scalar.name);
  std::vector<StridedTensor> inputs{strided("acc", problem.x, argument(0))},
      outputs{strided("acc", problem.y, argument(1))};
  int next = 2;
  for (std::size_t i = 0; i < problem.epilogue.operands.size(); ++i) {
    TensorDescription const& tensor = problem.epilogue.operands[i];
    auto const& operand = expression.operands()[i];
    StridedTensor input{operand.name, tensor, argument(next++), {}};
    for (std::size_t d = 0; d < operand.indices.size(); ++d)
      for (std::size_t axis = 0; axis < letters.size(); ++axis)
        if (operand.indices[d] == letters[axis]) input.stride[axis] += tensor.layout.stride[d];
    inputs.push_back(std::move(input));
  }
  for (std::size_t i = 0; i < problem.epilogue.stores.size(); ++i)
    outputs.push_back(strided(expression.stores()[i].name, problem.epilogue.stores[i], argument(next++)));
  add_map(program, problem.x.shape(), formula, std::move(inputs), outputs, target);
  return program;
}

RunValues run_values(ElementwiseProblem const& problem, ElementwiseProblem::Arguments const& arguments) {
  RunValues values;
  values.count = problem.epilogue.expression.scalars().size();
  std::copy_n(arguments.scalars.begin(), values.count, values.scalar.begin());
  return values;
}

template <>
PrimitiveProgram lower(AddProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Formula formula;
  formula.constants = {{"alpha", problem.alpha}, {"beta", problem.beta}};
  formula.text = problem.b.present() ? "alpha * a[e] + beta * b[e]" : "alpha * a[e]";
  formula.result = "y";
  std::vector<StridedTensor> inputs{strided("a", problem.a, argument_named(problem, "a"))};
  if (problem.b.present()) inputs.push_back(strided("b", problem.b, argument_named(problem, "b")));
  add_map(program, problem.y.shape(), formula, inputs,
          {strided("y", problem.y, argument_named(problem, "y"))}, target);
  return program;
}

template <>
PrimitiveProgram lower(TransformProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Formula formula;
  formula.text = "x[e]";
  formula.result = "y";
  add_map(program, problem.y.shape(), formula, {strided("x", problem.x, argument_named(problem, "x"))},
          {strided("y", problem.y, argument_named(problem, "y"))}, target, true);
  return program;
}

template <>
PrimitiveProgram lower(DropoutProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Formula formula;
  formula.text = "select(kept[e] != 0, x[e] / probability, 0)";
  formula.constants = {{"probability", 1 - problem.probability}};
  formula.result = "y";
  add_map(program, problem.x.shape(), formula,
          {strided("x", problem.x, argument_named(problem, "x")), mask_of(problem.x.shape())},
          {strided("y", problem.y, argument_named(problem, "y"))}, target);
  DropoutMask const mask(problem.probability, problem.seed, 0);
  for (PrimitivePass& pass : program.passes) {
    pass.parameters.seed = mask.seed;
    pass.parameters.threshold = mask.threshold;
  }
  return program;
}

RunValues run_values(DropoutProblem const&, DropoutProblem::Arguments const& arguments) {
  RunValues values;
  values.step = arguments.step;
  return values;
}

template <>
PrimitiveProgram lower(ReduceProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Reduction reduction;
  reduction.shape = problem.x.shape();
  double count = 1;
  for (int d = 0; d < reduction.shape.rank; ++d) {
    bool const reduced = problem.y.extent(d) == 1;
    reduction.reduced.push_back(reduced);
    if (reduced) count *= static_cast<double>(reduction.shape[d]);
  }
  ReduceOperation const operation = problem.operation;
  reduction.combine = operation == ReduceOperation::max ? 1 : operation == ReduceOperation::min ? 2 : 0;
  reduction.terms.text = operation == ReduceOperation::sum_of_squares ? "x[e] * x[e]" : "x[e]";
  reduction.terms.result = "v0";
  reduction.last.text = operation == ReduceOperation::mean ? "s0[e] / count" : "s0[e]";
  reduction.last.constants = {{"count", count}};
  reduction.last.result = "y";
  reduction.inputs = {strided("x", problem.x, argument_named(problem, "x"))};
  StridedTensor y = strided("y", problem.y, argument_named(problem, "y"));
  for (int d = 0; d < reduction.shape.rank; ++d)
    if (reduction.reduced[static_cast<std::size_t>(d)]) y.stride[d] = 0;
  reduction.outputs = {y};
  add_reduction(program, reduction, target);
  return program;
}

template <>
PrimitiveProgram lower(OptimizerProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Formula formula;
  formula.constants = {{"decay", problem.weight_decay}, {"momentum", problem.momentum},
                       {"beta1", problem.beta1},        {"beta2", problem.beta2},
                       {"rest1", 1 - problem.beta1},    {"rest2", 1 - problem.beta2},
                       {"epsilon", problem.epsilon}};
  formula.result = "parameter";
  std::vector<StridedTensor> tensors{
      strided("parameter", problem.parameter, argument_named(problem, "parameter"))};
  std::vector<StridedTensor> outputs = tensors;
  tensors.push_back(strided("gradient", problem.gradient, argument_named(problem, "gradient")));
  bool const adam = problem.kind == OptimizerKind::adam;
  if (problem.state.present()) {
    tensors.push_back(strided("velocity", problem.state, argument_named(problem, "velocity")));
    outputs.push_back(tensors.back());
    outputs.back().name = "new_velocity";
  }
  bool const given = problem.numbers.present(), scaled = problem.scaling.present();
  auto const one_for_all = [&](char const* name, TensorDescription const& tensor, char const* of, Index at) {
    StridedTensor input{name, tensor, argument_named(problem, of), {}};
    input.binding.first = at;
    tensors.push_back(std::move(input));
    return name + std::string("[e]");
  };
  auto const number = [&](char const* name, Index at) {
    return given ? one_for_all(name, problem.numbers, "numbers", at) : std::string(name);
  };
  std::string gradient = "gradient[e]", taken;
  if (scaled) {
    gradient += " / " + one_for_all("scale", problem.scaling, "scaling", 0);
    taken = "abs(" + one_for_all("sum", problem.scaling, "scaling", 1) + ") <= 3.4028234e38";
  }
  auto const unless_left_out = [&](std::string const& value, char const* old) {
    return scaled ? "select(" + taken + ", " + value + ", " + old + "[e])" : value;
  };
  std::string const g = "let g = " + gradient + " + decay * parameter[e]; ";
  std::string const rate = number("rate", 0);
  if (adam) {
    tensors.push_back(strided("second", problem.state, argument_named(problem, "second")));
    outputs.push_back(tensors.back());
    outputs.back().name = "new_second";
    if (!given) formula.scalars = {"rate", "correction1", "correction2"};
    formula.text = g +
                   "let m = beta1 * velocity[e] + rest1 * g; let v = beta2 * second[e] + rest2 * g * g; "
                   "store(new_velocity, " +
                   unless_left_out("m", "velocity") + "); store(new_second, " +
                   unless_left_out("v", "second") + "); " +
                   unless_left_out("parameter[e] - " + rate + " * (m / " + number("correction1", 1) +
                                       ") / (sqrt(v / " + number("correction2", 2) + ") + epsilon)",
                                   "parameter");
  } else {
    if (!given) formula.scalars = {"rate"};
    formula.text =
        g +
        (problem.state.present() ? "let v = momentum * velocity[e] + g; store(new_velocity, " +
                                       unless_left_out("v", "velocity") + "); "
                                 : "let v = g; ") +
        unless_left_out("parameter[e] - " + rate + " * " + (problem.nesterov ? "(g + momentum * v)" : "v"),
                        "parameter");
  }
  add_map(program, problem.parameter.shape(), formula, tensors, outputs, target);
  return program;
}

RunValues run_values(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments) {
  RunValues values;
  if (problem.numbers.present()) return values;
  StepNumbers const now = step_numbers(problem, arguments.rate, arguments.step);
  values.scalar = {now.rate, now.correction1, now.correction2};
  values.count = problem.kind == OptimizerKind::adam ? 3 : 1;
  return values;
}

}  // namespace cosmati::plan
