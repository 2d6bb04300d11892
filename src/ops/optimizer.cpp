// Validation of optimizer steps.
#include "cosmati/ops/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "src/ops/check.h"

namespace cosmati {
namespace {

void check_decay(char const* name, double value) {
  if (!(value >= 0 && value < 1))
    refuse("adam", fmt::format("{} is {}; it must be at least 0 and below 1", name, value));
}

}  // namespace

void check_numbers(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments) {
  if (problem.kind == OptimizerKind::adam && !problem.numbers.present() && arguments.step < 1)
    refuse("adam", fmt::format("step is {}; steps are counted from 1", arguments.step));
}

StepNumbers step_numbers(OptimizerProblem const& problem, double rate, long long step) {
  auto const t = static_cast<double>(step);
  return {rate, 1 - std::pow(problem.beta1, t), 1 - std::pow(problem.beta2, t)};
}

StepNumbers step_numbers(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments) {
  if (!problem.numbers.present()) return step_numbers(problem, arguments.rate, arguments.step);
  auto const* const given = static_cast<float const*>(arguments.numbers);
  return {static_cast<double>(given[0]), static_cast<double>(given[1]), static_cast<double>(given[2])};
}

std::optional<double> gradient_factor(OptimizerProblem const& problem,
                                      OptimizerProblem::Arguments const& arguments) {
  if (!problem.scaling.present()) return 1;
  auto const* const given = static_cast<float const*>(arguments.scaling);
  if (!std::isfinite(given[1])) return {};
  return 1 / static_cast<double>(given[0]);
}

void validate(OptimizerProblem const& problem) {
  bool const adam = problem.kind == OptimizerKind::adam;
  char const* const operation = adam ? "adam" : "sgd";
  Named const parameter{"parameter", problem.parameter};
  if (adam && !problem.state.present())
    refuse(operation, "state is missing: the two moments need a description");
  OptimizerProblem::visit_tensors(
      problem, [&](char const* name, Role role, TensorDescription const& tensor, auto) {
        check_tensor(operation, {&tensor == &problem.state ? "state (of the moments)" : name, tensor}, role);
      });
  check_same_shape(operation, {"gradient", problem.gradient}, parameter);
  if (problem.state.present()) check_same_shape(operation, {"state", problem.state}, parameter);
  auto const check_numbers = [&](char const* name, TensorDescription const& numbers, Index count) {
    if (!numbers.present()) return;
    check_type(operation, {name, numbers}, {DataType::f32});
    check_shape(operation, {name, numbers}, Shape(count));
    if (numbers.layout.stride[0] != 1) refuse(operation, fmt::format("{} must be contiguous", name));
  };
  check_numbers("numbers", problem.numbers, 3);
  check_numbers("scaling", problem.scaling, 2);
  check_finite(operation, "weight_decay", problem.weight_decay);
  if (adam) {
    check_decay("beta1", problem.beta1);
    check_decay("beta2", problem.beta2);
    if (!(problem.epsilon >= 0))
      refuse(operation, fmt::format("epsilon is {}; it must not be negative", problem.epsilon));
    return;
  }
  check_finite(operation, "momentum", problem.momentum);
  if (problem.momentum != 0 && !problem.state.present())
    refuse(operation, fmt::format("state is missing: momentum {} needs a velocity", problem.momentum));
}

}  // namespace cosmati
