// Batch normalization followed by the activation, as used after the hidden layers of both networks.
#pragma once
#include "cosmati/ops/activation.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/normalization.h"
#include "nets/dcgan/training/variables.h"
#include "nets/dcgan/training/workbench.h"

namespace cosmati::dcgan {

// y = f(batch_norm(x)); f: relu if `slope` is 0, otherwise leaky_relu; part of the normalization in both
// directions if the bench fuses, otherwise operations of its own. If devices share each batch and its
// statistics, means and variances are those of the whole batch, and so is the gradient: the moments of all
// devices are added within forward(), the gradients of beta and gamma within backward().
class Normalized {
 public:
  // Adds `name`_beta and `name`_gamma to the variables, and `name`_mean and `name`_var to the statistics.
  Normalized(Network& network, std::string const& name, Index channel_count, double slope);
  // With `training`, uses the batch's own statistics, which forward() writes to `batch`, laid out as
  // network.statistics, for backward(); otherwise their moving average.
  void prepare(Workbench& bench, Network const& network, TensorDescription const& x,
               TensorDescription const& y, bool training, DeviceMemory const& batch);
  void forward(Workbench const& bench, Network const& network, void const* x, void* y) const;
  // dy: the gradient after the activation; if the bench does not fuse, it is overwritten by the one before
  // it. dx: the gradient before the normalization; those of beta and gamma go to network.gradient[which].
  void backward(Workbench const& bench, Network const& network, int which, void const* x, void const* y,
                void* dy, void* dx) const;

 private:
  void normalize_together(Workbench const& bench, Network const& network,
                          BatchNormProblem::Arguments arguments) const;
  void prepare_together(Workbench& bench, Network const& network, BatchNormProblem problem);

  int beta_, gamma_, mean_, variance_;
  double slope_;
  bool training_ = false, shared_ = false;
  DeviceMemory const* batch_ = nullptr;  // statistics of the last batch
  Prepared<BatchNormProblem> normalize_, denormalize_;
  Prepared<ActivationProblem> activate_, deactivate_;  // if the bench does not fuse
  // For a batch shared by devices: variance to second moment and back, and normalization by the summed
  // moments.
  Prepared<ElementwiseProblem> to_moment_, to_variance_, gradient_;
  Prepared<BatchNormProblem> apply_;
  Prepared<AddProblem> copy_;
  DeviceMemory sums_;  // of the gradients of beta and gamma, in the layout of the variables
};

}  // namespace cosmati::dcgan
