// Steps of an optimizer, and learning-rate schedules.
#pragma once
#include <optional>
#include <string>

#include "cosmati/ops/operation.h"

namespace cosmati {

enum class OptimizerKind : unsigned char { sgd, adam };

// One step, in place, with g = gradient + weight_decay * parameter:
//   sgd:  velocity = momentum*velocity + g
//         parameter -= rate * velocity; with nesterov: rate * (g + momentum*velocity)
//   adam: first = beta1*first + (1-beta1)*g;  second = beta2*second + (1-beta2)*g*g;  t = step, from 1
//         parameter -= rate * (first/(1-beta1^t)) / (sqrt(second/(1-beta2^t)) + epsilon)
// (Kingma and Ba 2015) All tensors have the same shape; the state is initially zero.
struct OptimizerProblem {
  OptimizerKind kind = OptimizerKind::sgd;
  TensorDescription parameter;
  TensorDescription gradient;
  // The layout of velocity, or of first and second moments; absent for sgd without momentum.
  TensorDescription state;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // f32 (3), optional: the rate and adam's 1-beta1^t and 1-beta2^t in device memory, so that a recorded step
  // can be repeated with new values. Arguments::rate and ::step are then ignored.
  TensorDescription numbers;
  // f32 (2), optional: gradients are divided by scaling[0], and the step is skipped if scaling[1], the sum of
  // the gradients, is not finite (loss scaling: Micikevicius et al. 2018).
  TensorDescription scaling;

  struct Arguments {
    void* parameter = nullptr;
    void const* gradient = nullptr;
    void* velocity = nullptr;  // sgd: the velocity; adam: the first moment
    void* second = nullptr;    // adam: the second moment
    double rate = 0;
    long long step = 1;
    void const* numbers = nullptr;
    void const* scaling = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("parameter", Role::in_out, problem.parameter, &Arguments::parameter);
    visit("gradient", Role::input, problem.gradient, &Arguments::gradient);
    if (problem.state.present()) visit("velocity", Role::in_out, problem.state, &Arguments::velocity);
    if (problem.kind == OptimizerKind::adam) visit("second", Role::in_out, problem.state, &Arguments::second);
    if (problem.numbers.present()) visit("numbers", Role::input, problem.numbers, &Arguments::numbers);
    if (problem.scaling.present()) visit("scaling", Role::input, problem.scaling, &Arguments::scaling);
  }
};

void validate(OptimizerProblem const& problem);  // throws Error(bad_request)
// Throws Error(bad_request) if the step of adam is less than 1.
void check_numbers(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments);

// The numbers of one step, in the order of OptimizerProblem::numbers; corrections: adam's 1-beta^t.
struct StepNumbers {
  double rate, correction1, correction2;
};
StepNumbers step_numbers(OptimizerProblem const& problem, double rate, long long step);
// The same for a run whose arguments are in host memory: OptimizerProblem::numbers if present.
StepNumbers step_numbers(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments);
// Returns the factor of the gradients in such a run, or nullopt if the step is skipped.
std::optional<double> gradient_factor(OptimizerProblem const& problem,
                                      OptimizerProblem::Arguments const& arguments);

enum class ScheduleKind : unsigned char { constant, step, inverse, cosine, one_cycle };
inline constexpr int schedule_kind_count = 5;
char const* name_of(ScheduleKind kind);  // constant, step, inverse, cosine, one-cycle
ScheduleKind parse_schedule_kind(
    std::string const& name);  // throws Error(bad_request) listing the valid names

// Learning rate as a function of progress: t = step / total, 0 at the first step.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double rate = 0.01;       // the base; the peak of one_cycle
  double decay = 0.1;       // step: factor at each drop; inverse: rate / (1 + decay*step)^power
  double power = 0.75;      // inverse
  long long period = 1000;  // step: steps between drops
  double warm_up = 0.3;     // one_cycle: fraction of the steps that rise (cosine) from rate/start_divisor
  double start_divisor = 25;
  double end_divisor = 1e4;  // one_cycle ends (cosine) at rate/end_divisor; cosine ends at 0
  // Returns the rate of a step with 0 <= step < total. Throws Error(bad_request) if a field is out of range.
  double rate_at(long long step, long long total) const;
};

}  // namespace cosmati
