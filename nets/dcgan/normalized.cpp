// Two operations forward, two backward.
#include "nets/dcgan/normalized.h"

#include "nets/dcgan/weights.h"

namespace cosmati::dcgan {

Normalized::Normalized(Network& network, std::string const& name, Index channel_count, double slope)
    : beta_(network.variables.add(name + "_beta", Shape(channel_count))),
      gamma_(network.variables.add(name + "_gamma", Shape(channel_count))),
      mean_(network.statistics.add(name + "_mean", Shape(channel_count))),
      variance_(network.statistics.add(name + "_var", Shape(channel_count))),
      slope_(slope) {}

void Normalized::prepare(Workbench& bench, TensorDescription const& x, TensorDescription const& y,
                         bool training) {
  training_ = training;
  BatchNormProblem problem;
  problem.mode = training ? BatchNormMode::training : BatchNormMode::inference;
  problem.x = x;
  problem.y = y;
  problem.statistics = describe(DataType::f32, Shape(x.extent(1)));
  problem.epsilon = batch_norm_epsilon;
  bench.make(normalize_, problem);
  ActivationProblem activation;
  activation.function = slope_ == 0 ? ActivationFunction::relu : ActivationFunction::leaky_relu;
  activation.alpha = slope_;
  activation.x = activation.y = activation.dx = y;
  bench.make(activate_, activation);
  if (!training) return;
  problem.mode = BatchNormMode::backward;
  problem.dx = x;
  bench.make(denormalize_, problem);
  activation.direction = Direction::backward;
  bench.make(deactivate_, activation);
}

void Normalized::forward(Network const& network, void const* x, void* y, void* workspace) const {
  BatchNormProblem::Arguments arguments{
      .x = x, .scale = network.value(gamma_), .bias = network.value(beta_), .y = y};
  if (training_) {
    arguments.saved_mean = network.statistics.in(network.batch, mean_);
    arguments.saved_variance = network.statistics.in(network.batch, variance_);
  } else {
    arguments.mean = network.statistics.in(network.running, mean_);
    arguments.variance = network.statistics.in(network.running, variance_);
  }
  normalize_.run(arguments, workspace);
  activate_.run({.x = y, .y = y}, workspace);
}

void Normalized::backward(Network const& network, int which, void const* x, void const* y, void* dy, void* dx,
                          void* workspace) const {
  // The sign of y is that of what the activation saw, so y stands for it.
  deactivate_.run({.x = y, .dy = dy, .dx = dy}, workspace);
  denormalize_.run({.x = x,
                    .dy = dy,
                    .scale = network.value(gamma_),
                    .mean = network.statistics.in(network.batch, mean_),
                    .variance = network.statistics.in(network.batch, variance_),
                    .dx = dx,
                    .dscale = network.variables.in(network.gradient[which], gamma_),
                    .dbias = network.variables.in(network.gradient[which], beta_)},
                   workspace);
}

}  // namespace cosmati::dcgan
