// The last layers of a training: softmax with cross-entropy, and Gaussian units.
#include <cmath>

#include "nets/layers.h"

namespace cosmati::nets {
namespace {

TensorDescription labels_description(Index n) { return describe(DataType::s32, Shape(n)); }
TensorDescription loss_description() { return describe(DataType::f32, Shape(1)); }

}  // namespace

void SoftmaxLoss::prepare(Context const& context, Parameters const&, TensorDescription const& x) {
  scores_ = make(TransformProblem{x, describe(DataType::f32, x.shape())}, context.device);
  if (!context.training) return;
  CrossEntropyProblem problem;
  problem.x = problem.dx = x;
  problem.labels = labels_description(x.extent(0));
  problem.loss = loss_description();
  loss_ = make(problem, context.device);
}

void SoftmaxLoss::scores(Parameters const&, void const* x, float* scores, std::byte* workspace) {
  scores_.run({.x = x, .y = scores}, workspace);
}

double SoftmaxLoss::loss(Parameters const&, Gradients, void const* x, int const* labels, void* dx,
                         std::byte* workspace) {
  float loss = 0;
  loss_.run({.x = x, .labels = labels, .loss = &loss, .dx = dx}, workspace);
  return static_cast<double>(loss);
}

GaussianLoss::GaussianLoss(Parameters& parameters, std::string const& name, Index inputs, Index classes,
                           bool trainable, std::optional<double> rubbish)
    : centres_(parameters.add(name + ".centres", {classes, inputs}, trainable)),
      rubbish_(rubbish.value_or(HUGE_VAL)) {}

void GaussianLoss::prepare(Context const& context, Parameters const& parameters, TensorDescription const& x) {
  TensorDescription const& centres = parameters[centres_].description;
  RbfProblem problem;
  problem.x = x;
  problem.centres = centres;
  problem.rubbish = rubbish_;
  problem.distances = describe(DataType::f32, Shape(x.extent(0), centres.extent(0)));
  distances_ = make(problem, context.device);
  negate_ = make(AddProblem{problem.distances, {}, problem.distances, -1, 0}, context.device);
  if (!context.training) return;
  problem.labels = labels_description(x.extent(0));
  problem.loss = loss_description();
  problem.distances = {};
  loss_ = make(problem, context.device);
  problem.direction = Direction::backward;
  if (parameters[centres_].trainable) problem.dcentres = centres;
  backward_ = make(problem, context.device);
}

void GaussianLoss::scores(Parameters const& parameters, void const* x, float* scores, std::byte* workspace) {
  distances_.run({.x = x, .centres = parameters.value(centres_), .distances = scores}, workspace);
  negate_.run({.a = scores, .y = scores}, workspace);
}

double GaussianLoss::loss(Parameters const& parameters, Gradients gradients, void const* x, int const* labels,
                          void* dx, std::byte* workspace) {
  float loss = 0;
  float const* const centres = parameters.value(centres_);
  loss_.run({.x = x, .centres = centres, .labels = labels, .loss = &loss}, workspace);
  backward_.run({.x = x,
                 .centres = centres,
                 .labels = labels,
                 .dx = dx,
                 .dcentres = gradients.of(parameters[centres_])},
                workspace);
  return static_cast<double>(loss);
}

}  // namespace cosmati::nets
