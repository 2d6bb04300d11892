// Batch normalization followed by the activation, as used after the hidden layers of both networks.
#pragma once
#include "cosmati/ops/activation.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/normalization.h"
#include "nets/dcgan/training/variables.h"
#include "nets/dcgan/training/workbench.h"

namespace cosmati::dcgan {

// y = f(batch_norm(x)); f: relu where `slope` is 0, else leaky_relu. Where devices share each batch, means
// and variances are those of the whole batch, and so is the gradient: the moments of all devices are added in
// the middle of forward(), the gradients of beta and gamma in the middle of backward().
class Normalized {
 public:
  // Adds `name`_beta and `name`_gamma, and `name`_mean and `name`_var to the statistics.
  Normalized(Network& network, std::string const& name, Index channel_count, double slope);
  // With `training` by the batch's own statistics, else by their moving average.
  void prepare(Workbench& bench, Network const& network, TensorDescription const& x,
               TensorDescription const& y, bool training);
  void forward(Network const& network, void const* x, void* y, void* workspace) const;
  // dy becomes the gradient before the activation, dx that before the normalization; those of beta and gamma
  // go to network.gradient[which].
  void backward(Network const& network, int which, void const* x, void const* y, void* dy, void* dx,
                void* workspace) const;

 private:
  void normalize_together(Network const& network, BatchNormProblem::Arguments arguments,
                          void* workspace) const;
  void prepare_together(Workbench& bench, Network const& network, BatchNormProblem problem);

  int beta_, gamma_, mean_, variance_;
  double slope_;
  bool training_ = false, shared_ = false;
  Prepared<BatchNormProblem> normalize_, denormalize_;
  Prepared<ActivationProblem> activate_, deactivate_;
  // For a batch shared by devices: variance to second moment and back, and normalization by the summed
  // moments.
  Prepared<ElementwiseProblem> to_moment_, to_variance_, gradient_;
  Prepared<BatchNormProblem> apply_;
  Prepared<AddProblem> copy_;
  DeviceMemory sums_;  // of the gradients of beta and gamma, laid out as the variables are
};

}  // namespace cosmati::dcgan
