// Trains a small network, or computes its scores, with one kernel that runs many steps; for networks whose
// images, activations and gradients fit in the shared memory of a block. The kernel is composed for the
// device, cuda or emulator.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cosmati/network/arguments.h"
#include "cosmati/network/shape.h"
#include "cosmati/ops/memory.h"
#include "cosmati/ops/optimizer.h"

namespace cosmati {

struct FusedPlan {
  FusedNetwork network;  // including images and threads per block
  OptimizerProblem optimizer;
  Device device;
  Index batch = 0;  // images of this device
  int shared_bytes = 0;
  std::string refusal;  // why the device does not train the network with one kernel; empty: it does

  std::string text() const;  // the choice or the refusal as a sentence
};

// Plans how to train `layers` (without block properties) in batches of `batch` images with SGD with momentum,
// or Adam. `factors`: f32, or tf32, which permits convolutions on tensor cores with factors rounded to tf32.
// `team`: `device` is a member of a team. Pure.
FusedPlan plan_fused(FusedNetwork const& layers, Index batch, OptimizerProblem const& optimizer,
                     Device const& device, DataType factors = DataType::f32, bool team = false);

// Returns whether these devices can train as a team: at most max_fused_members different devices of this
// process that can access each other's memory. Enables that access.
bool can_train_together(std::vector<Device> const& devices);

// A prepared plan with the memory that its kernel needs in addition to the caller's. Supports one run at a
// time.
class FusedTraining {
 public:
  // Compiles the kernel, or finds it in the cache. Throws Error(bad_request) if the plan is a refusal.
  explicit FusedTraining(FusedPlan const& plan);
  ~FusedTraining();
  // For a team: inbox() allocates and returns the device memory that receives gradients of `parameters`
  // parameters from `members` members. Before it runs, each member calls join() with all inboxes in order of
  // the members, and its own number. All members run the same numbers of steps at the same time, in separate
  // threads.
  Delivery* inbox(int members, Index parameters);
  void join(std::vector<Delivery*> const& inboxes, int own);
  // Enqueues arguments.steps steps. The caller sets the fields up to `losses`, except `size`.
  void run(FusedTrainingArguments arguments, Stream stream = nullptr);
  // Enqueues the computation of `scores` (count, classes), in device memory, for the images whose numbers
  // (s32) are at arguments.rows, an array of at least four elements. The caller sets the fields up to `rows`,
  // and `values`.
  void score(FusedTrainingArguments arguments, Index count, float* scores, Stream stream = nullptr);

 private:
  struct Launch;
  FusedPlan plan_;
  std::unique_ptr<Launch> launch_;
  int blocks_ = 0;
  DeviceMemory saved_, sums_, image_losses_, counter_, inbox_;
  FusedTeamArguments team_;
};

}  // namespace cosmati
