// The last layers of a training: softmax with cross-entropy, and Gaussian units.
#include <cmath>

#include "nets/layers.h"

namespace cosmati::nets {
namespace {

// Of one step of many: nothing promises more than the alignment of its elements.
TensorDescription of_a_step(DataType type, Index count) {
  TensorDescription result = describe(type, Shape(count));
  result.alignment = 4;
  return result;
}
TensorDescription labels_description(Index n) { return of_a_step(DataType::s32, n); }
TensorDescription loss_description() { return of_a_step(DataType::f32, 1); }

}  // namespace

std::string SoftmaxLoss::name() const { return "softmax and cross-entropy"; }

void SoftmaxLoss::plan(Context const& context, Parameters const&, TensorDescription const& x) {
  classes_ = x.extent(1);
  make(scores_, "scores", TransformProblem{x, describe(DataType::f32, x.shape())}, context.device);
  if (!context.training) return;
  CrossEntropyProblem problem;
  problem.x = problem.dx = x;
  problem.labels = labels_description(x.extent(0));
  problem.loss = loss_description();
  apart_ = context.branch;
  if (apart_) {
    problem.direction = Direction::backward;
    make(gradient_, "gradient", problem, context.device);
    problem.direction = Direction::forward;
    problem.dx = {};
  }
  make(loss_, "loss", problem, context.device);
}

void SoftmaxLoss::scores(Pass const& pass, void const* x, float* scores) {
  scores_.run({.x = x, .y = scores}, pass.main.workspace, pass.main.stream);
}

void SoftmaxLoss::loss(Pass const& pass, void const* x, int const* labels, float* loss, void* dx) {
  if (!apart_) {
    loss_.run({.x = x, .labels = labels, .loss = loss, .dx = dx}, pass.main.workspace, pass.main.stream);
    return;
  }
  gradient_.run({.x = x, .labels = labels, .dx = dx}, pass.main.workspace, pass.main.stream);
  loss_.run({.x = x, .labels = labels, .loss = loss}, pass.side.workspace, pass.side.stream);
}

GaussianLoss::GaussianLoss(Parameters& parameters, std::string const& name, Index inputs, Index classes,
                           bool trainable, std::optional<double> rubbish)
    : centres_(parameters.add(name + ".centres", {classes, inputs}, trainable)),
      classes_(classes),
      rubbish_(rubbish.value_or(HUGE_VAL)) {}

std::string GaussianLoss::name() const { return "Gaussian units"; }

void GaussianLoss::plan(Context const& context, Parameters const& parameters, TensorDescription const& x) {
  TensorDescription const& centres = parameters[centres_].description;
  RbfProblem problem;
  problem.x = x;
  problem.centres = centres;
  problem.rubbish = rubbish_;
  problem.distances = describe(DataType::f32, Shape(x.extent(0), centres.extent(0)));
  make(distances_, "scores", problem, context.device);
  make(negate_, "negation", AddProblem{problem.distances, {}, problem.distances, -1, 0}, context.device);
  if (!context.training) return;
  problem.labels = labels_description(x.extent(0));
  problem.loss = loss_description();
  problem.distances = {};
  make(loss_, "loss", problem, context.device);
  problem.direction = Direction::backward;
  if (parameters[centres_].trainable) problem.dcentres = centres;
  make(backward_, "gradient", problem, context.device);
}

void GaussianLoss::scores(Pass const& pass, void const* x, float* scores) {
  distances_.run({.x = x, .centres = pass.value(centres_), .distances = scores}, pass.main.workspace,
                 pass.main.stream);
  negate_.run({.a = scores, .y = scores}, pass.main.workspace, pass.main.stream);
}

void GaussianLoss::loss(Pass const& pass, void const* x, int const* labels, float* loss, void* dx) {
  float const* const centres = pass.value(centres_);
  loss_.run({.x = x, .centres = centres, .labels = labels, .loss = loss}, pass.main.workspace,
            pass.main.stream);
  backward_.run({.x = x, .centres = centres, .labels = labels, .dx = dx, .dcentres = pass.gradient(centres_)},
                pass.main.workspace, pass.main.stream);
}

}  // namespace cosmati::nets
