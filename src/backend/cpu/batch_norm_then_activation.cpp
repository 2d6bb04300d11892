// Batch normalization with an activation as two or three operations, each by its own plan.
#include <algorithm>
#include <memory>
#include <string>

#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/own.h"

namespace cosmati::cpu {
namespace {

using Problem = BatchNormProblem;

Problem without_activation(Problem problem) {
  problem.slope = 1;
  return problem;
}

ActivationProblem activation_of(Problem const& problem, TensorDescription const& z) {
  ActivationProblem activation;
  activation.function = problem.slope == 0 ? ActivationFunction::relu : ActivationFunction::leaky_relu;
  activation.alpha = problem.slope;
  activation.x = activation.y = z;
  return activation;
}

bool is_backward(Problem const& problem) { return problem.mode == BatchNormMode::backward; }

// The plans for `problem`. Backward, z = batch_norm(x) and the gradient before the activation are in the
// workspace, dense, in f32 or f64: sums of the gradient are results.
struct Parts {
  Problem normalization;
  ActivationProblem activation;
  Problem again;  // z, if backward

  explicit Parts(Problem const& problem) : normalization(without_activation(problem)) {
    if (!is_backward(problem)) {
      activation = activation_of(problem, problem.y);
      return;
    }
    DataType const type = problem.y.type == DataType::f64 ? DataType::f64 : DataType::f32;
    TensorDescription const z = converted_description("y", Role::output, problem.y, {type});
    again = normalization;
    again.mode = BatchNormMode::inference;
    again.y = z;
    again.dx = {};
    activation = activation_of(problem, z);
    activation.direction = Direction::backward;
    activation.y = problem.y;
    activation.dx = normalization.y = z;
  }
};

class BatchNormThenActivation final : public HostKernel<Problem> {
 public:
  BatchNormThenActivation(Problem const& problem, Device const& device)
      : problem_(problem), z_(Parts(problem).activation.x) {
    Parts const parts(problem);
    normalization_ = prepare(make_plan(parts.normalization, device, {}));
    activation_ = prepare(make_plan(parts.activation, device, {}));
    if (is_backward(problem)) again_ = prepare(make_plan(parts.again, device, {}));
  }

  void run(Problem::Arguments const& arguments, std::byte* workspace) const override {
    if (!is_backward(problem_)) {
      normalization_.run(arguments, workspace);
      activation_.run({.x = arguments.y, .y = arguments.y}, workspace);
      return;
    }
    std::size_t const room = round_up(static_cast<std::size_t>(z_.bytes()));
    std::byte *const z = workspace, *const gradient = workspace + room, *const rest = gradient + room;
    Problem::Arguments own = arguments;
    own.y = z;
    again_.run(own, rest);
    activation_.run({.x = z, .dy = arguments.dy, .dx = gradient}, rest);
    own = arguments;
    own.dy = gradient;
    normalization_.run(own, rest);
  }

 private:
  Problem problem_;
  TensorDescription z_;
  Prepared<Problem> normalization_, again_;
  Prepared<ActivationProblem> activation_;
};

std::string violates(Problem const& problem, Device const& device) {
  if (!problem.has_activation()) return "the slope is 1: there is no activation";
  Parts const parts(problem);
  bool fast = make_plan(parts.normalization, device, {}).kernel != "reference" &&
              make_plan(parts.activation, device, {}).kernel != "reference";
  if (is_backward(problem)) fast = fast && make_plan(parts.again, device, {}).kernel != "reference";
  return fast ? "" : "no fast kernel supports the normalization, or the activation";
}

std::size_t workspace_bytes(Problem const& problem, Device const& device) {
  Parts const parts(problem);
  std::size_t most = std::max(make_plan(parts.normalization, device, {}).workspace_bytes,
                              make_plan(parts.activation, device, {}).workspace_bytes);
  if (!is_backward(problem)) return most;
  most = std::max(most, make_plan(parts.again, device, {}).workspace_bytes);
  return 2 * round_up(static_cast<std::size_t>(parts.activation.x.bytes())) + most;
}

}  // namespace

Candidate<Problem> batch_norm_then_activation_candidate() {
  return {"batch_norm_then_activation",
          {{violates}},
          workspace_bytes,
          [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
            return std::make_unique<BatchNormThenActivation>(plan.problem, plan.device);
          }};
}

}  // namespace cosmati::cpu
