// Training on one device that holds all data: images, parameters, optimizer state, complete batches. Steps
// are recorded once and repeated, several at a time; what differs between repetitions (image indices, the
// learning rate) is data that the host writes ahead. The host waits once per epoch, for the losses.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/fused_training.h"
#include "cosmati/ops/gather.h"
#include "cosmati/ops/queue.h"
#include "nets/executor.h"

namespace cosmati::nets {

// Images of a data set in the device's memory, as rows of pixels.
struct Resident {
  Resident(Device const& device, Dataset const& data);
  DeviceMemory pixels;
  TensorDescription description;
};

// A network for one batch size with its input pipeline.
class Batch {
 public:
  Batch(Assignment const& assignment, bool training, Resident const& images, Index size);
  Index size() const { return size_; }
  Sequence& network() { return *network_; }
  void gather(int const* order, Stream stream);

 private:
  Resident const& images_;
  Index size_;
  std::unique_ptr<Sequence> network_;
  Prepared<GatherProblem> gather_;
};

// A single device, or a member of a team: it then computes its share of each batch, and gradients and losses
// are reduced over the team during the backward pass.
class DeviceExecutor final : public Executor {
 public:
  explicit DeviceExecutor(Assignment const& assignment, Membership const& membership = {});

  void begin(Epoch epoch) override;
  void prepare_epoch(Epoch const& epoch) override;
  Index advance() override;
  double loss_sum() override;
  void fetch_parameters() override;
  LossScale loss_scale() override;
  std::vector<float> scores(Dataset const& data) override { return scores(data, 0, data.count()); }
  // The scores of `count` images starting at `first`.
  std::vector<float> scores(Dataset const& data, Index first, Index count);

  // Called by all members of the team: reductions as large as those of a step, before the first step is
  // recorded.
  void warm_up();
  Index classes() const { return classes_; }
  // The batch sizes for which this device has a fused kernel, and that kernel. A member of a team joins its
  // kernels with those of the other members for the same size before it trains.
  std::vector<Index> fused_sizes() const;
  FusedTraining& fused_training(Index size) { return *fused_.at(size); }
  // Trains batches of this size without the fused kernel.
  void train_by_layers(Index size);
  // Whether advance() only enqueues a fused kernel, so that one thread may call it for all members.
  // CUDA_LAUNCH_BLOCKING makes launches wait for kernels, which wait for those of the other members.
  bool enqueues_one_kernel();
  // A hash of every bit of the parameters and the optimizer's state. Already computed after scores() if the
  // device is a member of a team.
  std::uint64_t fingerprint();

 private:
  static constexpr std::size_t number_bytes = 16;  // per step: three numbers and a gap

  float* values() { return static_cast<float*>(values_.data()); }
  float* gradients() { return static_cast<float*>(gradients_.data()); }
  // The buffers of scores(), kept for the next call: the images in each batch, and their scores. `batch`:
  // none if the fused kernel computes the scores of all images at once.
  struct Scoring {
    std::unique_ptr<Batch> batch;
    Index size = 0, classes = 0;
    DeviceMemory order, scores;
    HostMemory all;
  };

  Resident const& resident(Dataset const& data);
  Batch& training_batch(Index size);
  Scoring& scoring(Dataset const& data, Index first, Index count);
  void fill_rows(Epoch const& epoch, HostMemory& rows);
  std::uint64_t fingerprint_of_copies() const;
  // The range of a batch of `size` images that this device computes; may be empty.
  std::pair<Index, Index> share(Index size) const;
  double weight(Index size) const;  // weight of that range in sums over the team
  Narrow narrow(bool training) const;
  void prepare_update();
  void refresh_factors(Stream stream);
  void update(void const* numbers, Stream stream);
  // This device's part of a step: for a batch of `size` with images, labels and numbers in row `row`.
  void step(Index size, Index row, Stream stream);
  Recording const& recording(Index size, Index steps);
  // Returns the kernel that trains batches of `size` images; null if they are trained layer by layer.
  FusedTraining* fused(Index size);
  FusedTraining* fused_scoring();
  FusedTrainingArguments images_of(Dataset const& data);  // for the fused kernel
  void copy_rows(DeviceMemory& to, HostMemory const& rows, std::size_t steps, Queue& queue);
  void run_fused(FusedTraining& training, Index size, Index steps);

  Assignment assignment_;
  Membership membership_;
  Queue queue_;
  Branch branch_;
  Branch sums_;      // in addition to the branch: sums of gradients
  Index max_steps_;  // per recording
  Index classes_ = 0;
  DeviceMemory values_, gradients_, workspace_;
  std::vector<Index> bucket_starts_;  // in gradients_, descending to 0: ranges that are summed together
  std::vector<DeviceMemory> states_;
  std::map<Dataset const*, std::unique_ptr<Resident>> residents_;
  std::map<Index, std::unique_ptr<Batch>> training_;
  std::map<std::tuple<Dataset const*, Index, Index>, Scoring> scoring_;
  Prepared<OptimizerProblem> update_;
  // For 16-bit types: the 16-bit copies of the values; for f16 also the state of the loss scale: scale, sum
  // of the gradients, good steps.
  DeviceMemory factors_, scaling_;
  Prepared<TransformProblem> convert_;
  Prepared<ReduceProblem> sum_gradients_;
  Prepared<ElementwiseProblem> rescale_;
  // A row contains the inputs of one step: the images' indices, their labels, the optimizer's numbers.
  std::size_t batch_bytes_ = 0, row_bytes_ = 0;
  DeviceMemory rows_, recorded_losses_;                      // of the steps of one recording
  HostMemory host_rows_, host_losses_;                       // of an epoch; fused kernels write the losses
  HostMemory next_rows_;                                     // of the next epoch
  DeviceMemory fused_rows_, next_fused_rows_;                // their copies, for fused kernels
  Queue ahead_;                                              // copies the rows of the next epoch
  std::optional<long long> next_rows_of_;                    // its steps_done, once prepared
  HostMemory copies_;                                        // of values and states, for their fingerprint
  std::optional<std::uint64_t> fingerprint_;                 // of their current state
  std::map<std::pair<Index, Index>, Recording> recordings_;  // by batch and steps
  FusedNetwork network_;                                     // without layers: layer by layer
  std::map<Index, std::unique_ptr<FusedTraining>> fused_;    // by batch
  Epoch last_epoch_;                                         // freed while the device works
  Epoch epoch_;                               // first and loss_sum: of the steps whose losses were read
  Index next_ = 0, enqueued_ = 0, read_ = 0;  // image; steps since begin()
};

}  // namespace cosmati::nets
