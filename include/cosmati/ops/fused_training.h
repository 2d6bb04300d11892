// Training of a small network by one kernel that runs many steps, for networks whose images, activations and
// gradients fit in the shared memory of a block. The kernel is composed for the device, cuda or emulator.
#pragma once
#include <memory>
#include <string>

#include "cosmati/network/arguments.h"
#include "cosmati/network/shape.h"
#include "cosmati/ops/memory.h"
#include "cosmati/ops/optimizer.h"

namespace cosmati {

struct FusedPlan {
  FusedNetwork network;  // including images and threads per block
  OptimizerProblem optimizer;
  Device device;
  Index batch = 0;
  int shared_bytes = 0;
  std::string refusal;  // why the device does not train the network by one kernel; empty: it does

  std::string text() const;  // the choice or the refusal as a sentence
};

// Plans how to train `layers` (without block properties) in batches of `batch` images with SGD with momentum,
// or Adam. Pure.
FusedPlan plan_fused(FusedNetwork const& layers, Index batch, OptimizerProblem const& optimizer,
                     Device const& device);

// A prepared plan with the memory that its kernel needs in addition to the caller's. Supports one run at a
// time.
class FusedTraining {
 public:
  // Compiles the kernel, or finds it in the cache. Throws Error(bad_request) if the plan is a refusal.
  explicit FusedTraining(FusedPlan const& plan);
  ~FusedTraining();
  // Enqueues arguments.steps steps. The caller sets the members up to `losses`, except `size`.
  void run(FusedTrainingArguments arguments, Stream stream = nullptr);

 private:
  struct Launch;
  FusedPlan plan_;
  std::unique_ptr<Launch> launch_;
  int blocks_ = 0;
  DeviceMemory saved_, sums_, image_losses_, counter_;
};

}  // namespace cosmati
