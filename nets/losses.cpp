// The last layers during training: softmax with cross-entropy, and Gaussian units.
#include <cmath>

#include "cosmati/epilogue/parse.h"
#include "nets/layers.h"

namespace cosmati::nets {
namespace {

// A part of a larger array: only the alignment of its elements is guaranteed.
TensorDescription of_a_step(DataType type, Index count) {
  TensorDescription result = describe(type, Shape(count));
  result.alignment = 4;
  return result;
}
TensorDescription labels_description(Index n) { return of_a_step(DataType::s32, n); }
TensorDescription loss_description() { return of_a_step(DataType::f32, 1); }

// Scales all elements of a tensor by one factor.
ElementwiseProblem scaled(TensorDescription const& from, TensorDescription const& to) {
  ElementwiseProblem problem;
  problem.x = from;
  problem.y = to;
  TensorDescription one = of_a_step(DataType::f32, from.extent(0));
  one.layout.stride[0] = 0;
  problem.epilogue = {epilogue::parse("acc * scale[m]", elementwise_indices(2)), {one}, {}};
  return problem;
}

}  // namespace

template <class Make>
void Widened::plan(Context const& context, TensorDescription const& x, Make const& make) {
  if (x.type == DataType::f32) return;
  x_ = {DataType::f32, x.layout};
  make(widen_, "widening", TransformProblem{x, x_});
  if (!context.training) return;
  make(narrow_, "narrowing", TransformProblem{x_, x});
  make(scale_, "scaling", scaled(x_, x));
}

void const* Widened::x(Pass const& pass, void const* x, std::byte* scratch) const {
  if (!present()) return x;
  widen_.run({.x = x, .y = scratch}, pass.main.workspace, pass.main.stream);
  return scratch;
}

void Widened::finish(Pass const& pass, void* dx, std::byte* scratch) const {
  if (!present()) return;
  void const* const from = scratch + rounded();
  void const* const scale[] = {pass.gradient_scale};
  if (pass.gradient_scale == nullptr)
    narrow_.run({.x = from, .y = dx}, pass.main.workspace, pass.main.stream);
  else
    scale_.run({.x = from, .y = dx, .operands = scale}, pass.main.workspace, pass.main.stream);
}

std::string SoftmaxLoss::name() const { return "softmax and cross-entropy"; }

void SoftmaxLoss::plan(Context const& context, Parameters const&, TensorDescription const& x) {
  classes_ = x.extent(1);
  make(scores_, "scores", TransformProblem{x, describe(DataType::f32, x.shape())}, context.device);
  if (!context.training) return;
  widened_.plan(context, x, [&](auto& target, char const* what, auto const& problem) {
    make(target, what, problem, context.device);
  });
  CrossEntropyProblem problem;
  problem.x = problem.dx = widened_.description(x);
  problem.labels = labels_description(x.extent(0));
  problem.loss = loss_description();
  apart_ = context.branch && !widened_.present();  // widening runs on the main queue
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
  if (apart_) {
    gradient_.run({.x = x, .labels = labels, .dx = dx}, pass.main.workspace, pass.main.stream);
    loss_.run({.x = x, .labels = labels, .loss = loss}, pass.side.workspace, pass.side.stream);
    return;
  }
  loss_.run(
      {.x = widened_.x(pass, x, scratch_), .labels = labels, .loss = loss, .dx = widened_.dx(dx, scratch_)},
      pass.main.workspace, pass.main.stream);
  widened_.finish(pass, dx, scratch_);
}

GaussianLoss::GaussianLoss(Parameters& parameters, std::string const& name, Index inputs, Index classes,
                           bool trainable, std::optional<double> rubbish)
    : centres_(parameters.add(name + ".centres", {classes, inputs}, trainable)),
      classes_(classes),
      rubbish_(rubbish.value_or(HUGE_VAL)) {}

std::string GaussianLoss::name() const { return "Gaussian units"; }

void GaussianLoss::plan(Context const& context, Parameters const& parameters, TensorDescription const& x) {
  TensorDescription const& centres = parameters[centres_].description;
  widened_.plan(context, x, [&](auto& target, char const* what, auto const& problem) {
    make(target, what, problem, context.device);
  });
  RbfProblem problem;
  problem.x = widened_.description(x);
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
  if (context.narrow() && parameters[centres_].trainable)
    make(scale_centres_, "scaling", scaled(centres, centres), context.device);
}

void GaussianLoss::scores(Pass const& pass, void const* x, float* scores) {
  distances_.run({.x = widened_.x(pass, x, scratch_), .centres = pass.value(centres_), .distances = scores},
                 pass.main.workspace, pass.main.stream);
  negate_.run({.a = scores, .y = scores}, pass.main.workspace, pass.main.stream);
}

void GaussianLoss::loss(Pass const& pass, void const* x, int const* labels, float* loss, void* dx) {
  float const* const centres = pass.value(centres_);
  x = widened_.x(pass, x, scratch_);
  loss_.run({.x = x, .centres = centres, .labels = labels, .loss = loss}, pass.main.workspace,
            pass.main.stream);
  backward_.run({.x = x,
                 .centres = centres,
                 .labels = labels,
                 .dx = widened_.dx(dx, scratch_),
                 .dcentres = pass.gradient(centres_)},
                pass.main.workspace, pass.main.stream);
  widened_.finish(pass, dx, scratch_);
  if (pass.gradient_scale == nullptr || !pass.parameters[centres_].trainable) return;
  void const* const scale[] = {pass.gradient_scale};
  scale_centres_.run({.x = pass.gradient(centres_), .y = pass.gradient(centres_), .operands = scale},
                     pass.main.workspace, pass.main.stream);
}

}  // namespace cosmati::nets
