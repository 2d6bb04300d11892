// Batch normalisation and the activation after it, as both networks have it after their hidden layers.
#pragma once
#include "cosmati/ops/activation.h"
#include "cosmati/ops/normalization.h"
#include "nets/dcgan/variables.h"
#include "nets/dcgan/workbench.h"

namespace cosmati::dcgan {

// y = f(batch_norm(x)); f: relu where `slope` is 0, else leaky_relu.
class Normalized {
 public:
  // Adds `name`_beta and `name`_gamma, and `name`_mean and `name`_var to the statistics.
  Normalized(Network& network, std::string const& name, Index channel_count, double slope);
  // With `training` by the batch's own statistics, else by their moving average.
  void prepare(Workbench& bench, TensorDescription const& x, TensorDescription const& y, bool training);
  void forward(Network const& network, void const* x, void* y, void* workspace) const;
  // dy becomes the gradient before the activation, dx that before the normalisation; those of beta and gamma
  // go to network.gradient[which].
  void backward(Network const& network, int which, void const* x, void const* y, void* dy, void* dx,
                void* workspace) const;

 private:
  int beta_, gamma_, mean_, variance_;
  double slope_;
  bool training_ = false;
  Prepared<BatchNormProblem> normalize_, denormalize_;
  Prepared<ActivationProblem> activate_, deactivate_;
};

}  // namespace cosmati::dcgan
