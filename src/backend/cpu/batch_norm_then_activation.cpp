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
  BatchNormThenActivation(Problem const& problem, Device const& device) : problem_(problem) {
    Parts const parts(problem);
    z_ = parts.activation.x;
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

Offer<Problem> offer_of_parts(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!problem.has_activation()) offer.refusal = "the slope is 1: there is no activation";
  if (!offer.refusal.empty()) return offer;
  Parts const parts(problem);
  auto const include = [&](auto const& part) {
    auto const plan = make_plan(part, device, {});
    if (plan.kernel == "reference")
      offer.refusal = "no fast kernel supports the normalization, or the activation";
    offer.workspace_bytes = std::max(offer.workspace_bytes, plan.workspace_bytes);
  };
  include(parts.normalization);
  include(parts.activation);
  if (!is_backward(problem)) return offer;
  include(parts.again);
  offer.workspace_bytes += 2 * round_up(static_cast<std::size_t>(parts.activation.x.bytes()));
  return offer;
}

}  // namespace

Candidate<Problem> batch_norm_then_activation_candidate() {
  Candidate<Problem> candidate{"batch_norm_then_activation",
                               {},
                               nullptr,
                               [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
                                 return std::make_unique<BatchNormThenActivation>(plan.problem, plan.device);
                               }};
  candidate.offer = &offer_of_parts;
  return candidate;
}

}  // namespace cosmati::cpu
