// Training LeNet-5: epochs over shuffled images, a report after each, and checkpoints from which training
// continues bit-identically.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cosmati/ops/optimizer.h"
#include "nets/lenet5/model.h"

namespace cosmati::lenet5 {

struct Hyperparameters {
  Variant variant = Variant::modern;
  int epochs = 10;
  Index batch = 64;
  OptimizerKind optimizer = OptimizerKind::sgd;
  Schedule schedule;
  double momentum = 0.9;
  double weight_decay = 0;
  unsigned long long seed = 1;
  DataType factors = DataType::f32;  // or tf32: the rounding of f32 factors of products
  DataType type = DataType::f32;     // or f16, with loss scaling, or bf16: nets::Context::type
};

DataType parse_factors(std::string const& name);  // throws Error(bad_request) for others
DataType parse_type(std::string const& name);     // the same

Hyperparameters default_hyperparameters(Variant variant);

struct EpochReport {
  int epoch = 0;                 // from 1
  double loss = 0;               // mean over the epoch's images, during training
  double train_accuracy = 0;     // 0..1, of all training images after the epoch
  double test_accuracy = 0;      // 0..1
  double learning_rate = 0;      // of the epoch's last step
  double images_per_second = 0;  // forward, backward, update
  double seconds = 0;            // including both evaluations
};

struct Progress {
  int epoch = 0;
  Index images = 0;  // processed images of this epoch; some may still be in flight on a device
  Index total = 0;
  double loss = 0;
};

struct Callbacks {
  std::function<void(Progress const&)> progress;
  std::function<void(EpochReport const&)> epoch;
  std::atomic<bool> const* stop = nullptr;  // checked after each step
  double progress_seconds = 0;              // between two calls of progress, which waits for the current loss
};

class Training {
 public:
  // Starts a new training. `train` and `test` must outlive it. A checkpoint does not depend on the number of
  // devices and processes; one process saves it.
  Training(Hyperparameters const& hyperparameters, nets::Dataset const& train, nets::Dataset const& test,
           nets::Team const& team);
  // Continues from a checkpoint, bit-identically. Throws Error(bad_file) if it is not a checkpoint, or was
  // made from other images.
  Training(std::string const& checkpoint, nets::Dataset const& train, nets::Dataset const& test,
           nets::Team const& team);

  // Trains to the last epoch, or until callbacks.stop is true; returns true if complete. Throws Error(system)
  // if a loss is not finite.
  bool run(Callbacks const& callbacks);
  void save(std::string const& path);

  Model& model() { return *model_; }
  Hyperparameters const& hyperparameters() const { return hyperparameters_; }
  int epochs_done() const { return epoch_; }
  Index images_done() const { return images_; }  // of the epoch that was interrupted
  // All finished epochs, including those before a checkpoint (without their times, which checkpoints do not
  // store).
  std::vector<EpochReport> const& history() const { return history_; }
  Evaluation evaluate_test() { return evaluate(*executor_, test_); }

 private:
  void prepare();
  nets::Epoch epoch_from(int epoch, Index images, double loss_sum, long long steps) const;
  void begin_epoch();
  void prepare_next_epoch();
  void take_loss();
  double learning_rate(long long step) const;

  Hyperparameters hyperparameters_;
  nets::Dataset const& train_;
  nets::Dataset const& test_;
  nets::Team team_;
  nets::LossScale loss_scale_;  // at the beginning
  std::unique_ptr<Model> model_;
  std::unique_ptr<nets::Executor> executor_;
  std::optional<nets::Epoch> next_epoch_;  // prepared
  std::vector<EpochReport> history_;
  int epoch_ = 0;        // finished ones
  Index images_ = 0;     // seen of the current epoch
  double loss_sum_ = 0;  // of the current epoch, over images
  long long steps_ = 0;  // since the beginning
};

}  // namespace cosmati::lenet5
