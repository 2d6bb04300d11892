// Batch normalization with its activation: one operation forward and one backward if the bench fuses, two
// otherwise; more if devices share a batch.
#include "nets/dcgan/training/normalized.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "cosmati/epilogue/parse.h"
#include "nets/dcgan/weights.h"

namespace cosmati::dcgan {

Normalized::Normalized(Network& network, std::string const& name, Index channel_count, double slope)
    : beta_(network.variables.add(name + "_beta", Shape(channel_count))),
      gamma_(network.variables.add(name + "_gamma", Shape(channel_count))),
      mean_(network.statistics.add(name + "_mean", Shape(channel_count))),
      variance_(network.statistics.add(name + "_var", Shape(channel_count))),
      slope_(slope) {}

void Normalized::prepare(Workbench& bench, Network const& network, TensorDescription const& x,
                         TensorDescription const& y, bool training, DeviceMemory const& batch) {
  training_ = training;
  batch_ = &batch;
  shared_ = training && network.shares_statistics();
  BatchNormProblem problem;
  problem.mode = training ? BatchNormMode::training : BatchNormMode::inference;
  problem.x = x;
  problem.y = y;
  problem.statistics = describe(DataType::f32, Shape(x.extent(1)));
  problem.epsilon = batch_norm_epsilon;
  if (bench.fuses()) problem.slope = slope_;
  bench.make(normalize_, problem);
  ActivationProblem activation;
  activation.function = slope_ == 0 ? ActivationFunction::relu : ActivationFunction::leaky_relu;
  activation.alpha = slope_;
  activation.x = activation.y = activation.dx = y;
  if (!bench.fuses()) bench.make(activate_, activation);
  if (!training) return;
  problem.mode = BatchNormMode::backward;
  problem.dx = x;
  bench.make(denormalize_, problem);
  activation.direction = Direction::backward;
  if (!bench.fuses()) bench.make(deactivate_, activation);
  if (shared_) prepare_together(bench, network, problem);
}

// The gradients of beta and gamma are adjacent in the flat array, and so are mean and variance.
void Normalized::prepare_together(Workbench& bench, Network const& network, BatchNormProblem problem) {
  TensorDescription const &x = problem.x, &dy = problem.y, &statistics = problem.statistics;
  ElementwiseProblem gradient;
  gradient.x = dy;
  gradient.y = x;
  double const all = static_cast<double>(x.layout.size() / x.extent(1)) / network.share;
  std::string const before_activation =
      problem.has_activation() ? fmt::format("acc * select(u * scale[c] + bias[c] > 0, 1, {})", problem.slope)
                               : "acc";
  gradient.epilogue.expression = epilogue::parse(
      fmt::format("let s = rsqrt(variance[c] + {:.17g}); let u = (image[n, c, h, w] - mean[c]) * s; "
                  "scale[c] * s * ({} - {:.17g} * (dbias[c] + u * dscale[c]))",
                  problem.epsilon, before_activation, 1 / all),
      elementwise_indices(4));
  for (auto const& operand : gradient.epilogue.expression.operands())
    gradient.epilogue.operands.push_back(operand.name == "image" ? x : statistics);
  bench.make(gradient_, gradient);
  problem.mode = BatchNormMode::inference;
  problem.dx = {};
  bench.make(apply_, problem);
  ElementwiseProblem moment;
  moment.x = moment.y = statistics;
  moment.epilogue = {epilogue::parse("acc + mean[i] * mean[i]", elementwise_indices(1)), {statistics}, {}};
  bench.make(to_moment_, moment);
  moment.epilogue = {
      epilogue::parse("max(acc - mean[i] * mean[i], 0)", elementwise_indices(1)), {statistics}, {}};
  bench.make(to_variance_, moment);
  Index const count = network.variables[gamma_].offset - network.variables[beta_].offset + x.extent(1);
  TensorDescription const both = describe(DataType::f32, Shape(count));
  bench.make(copy_, AddProblem{both, {}, both, 1, 0});
  sums_ = bench.memory(both);
}

void Normalized::forward(Workbench const& bench, Network const& network, void const* x, void* y) const {
  BatchNormProblem::Arguments arguments{
      .x = x, .scale = network.value(gamma_), .bias = network.value(beta_), .y = y};
  if (training_) {
    arguments.saved_mean = network.statistics.in(*batch_, mean_);
    arguments.saved_variance = network.statistics.in(*batch_, variance_);
  } else {
    arguments.mean = network.statistics.in(network.running, mean_);
    arguments.variance = network.statistics.in(network.running, variance_);
  }
  bench.run(normalize_, arguments);
  if (shared_) normalize_together(bench, network, arguments);
  if (!bench.fuses()) bench.run(activate_, {.x = y, .y = y});
}

// Combines the statistics of this device's share with those of the other devices.
void Normalized::normalize_together(Workbench const& bench, Network const& network,
                                    BatchNormProblem::Arguments arguments) const {
  auto* const mean = static_cast<float*>(arguments.saved_mean);
  auto* const variance = static_cast<float*>(arguments.saved_variance);
  void const* const operands[] = {mean};
  bench.run(to_moment_, {.x = variance, .y = variance, .operands = operands});
  auto const count = static_cast<std::size_t>(network.statistics[mean_].shape.size());
  network.sums->sum(mean, static_cast<std::size_t>(variance - mean) + count, network.share, bench.stream());
  bench.run(to_variance_, {.x = variance, .y = variance, .operands = operands});
  arguments.mean = mean;
  arguments.variance = variance;
  bench.run(apply_, arguments);
}

void Normalized::backward(Workbench const& bench, Network const& network, int which, void const* x,
                          void const* y, void* dy, void* dx) const {
  void const* const mean = network.statistics.in(*batch_, mean_);
  void const* const variance = network.statistics.in(*batch_, variance_);
  void const *const scale = network.value(gamma_), *const bias = network.value(beta_);
  void* const dbias = network.variables.in(network.gradient[which], beta_);
  // y has the sign of the activation's input, so it can take its place.
  if (!bench.fuses()) bench.run(deactivate_, {.x = y, .dy = dy, .dx = dy});
  bench.run(denormalize_, {.x = x,
                           .dy = dy,
                           .scale = scale,
                           .bias = bias,
                           .mean = mean,
                           .variance = variance,
                           .dx = dx,
                           .dscale = network.variables.in(network.gradient[which], gamma_),
                           .dbias = dbias});
  if (!shared_) return;
  auto* const sums = static_cast<float*>(sums_.data());
  bench.run(copy_, {.a = dbias, .y = sums});
  network.sums->sum(sums, sums_.bytes() / sizeof(float), 1, bench.stream());
  float const* const dscale = sums + (network.variables[gamma_].offset - network.variables[beta_].offset);
  std::map<std::string, void const*> const named{{"scale", scale},  {"bias", bias}, {"variance", variance},
                                                 {"mean", mean},    {"image", x},   {"dbias", sums},
                                                 {"dscale", dscale}};
  std::vector<void const*> operands;  // in the order in which the expression names them
  for (auto const& operand : gradient_.plan().problem.epilogue.expression.operands())
    operands.push_back(named.at(operand.name));
  bench.run(gradient_, {.x = dy, .y = dx, .operands = operands});
}

}  // namespace cosmati::dcgan
