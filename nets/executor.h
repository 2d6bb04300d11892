// Executors train and evaluate a network: on host threads that share each batch, or on a device that keeps
// all data in its memory. The network's code is the same.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cosmati/ops/optimizer.h"
#include "nets/dataset.h"
#include "nets/sequence.h"
#include "nets/team.h"

namespace cosmati::nets {

// Plans the network for batches of `batch` images.
using MakeSequence = std::function<std::unique_ptr<Sequence>(Context const& context, Index batch)>;

// Gradients in f16 would underflow; the loss gradient is multiplied by this scale, and the result divided by
// it. A step with a non-finite gradient is skipped and halves the scale; growth_steps good steps double it.
struct LossScale {
  static constexpr int growth_steps = 2000;
  float scale = 65536;
  float good_steps = 0;  // since it last changed
};

// The inputs of an executor, which must outlive it.
struct Assignment {
  Device device;
  Parameters& parameters;
  MakeSequence make;
  PixelStatistics statistics;
  DataType factors = DataType::f32;  // Context::factors
  DataType type = DataType::f32;     // Context::type; others than f32: by device executors
  // Used in training:
  Dataset const* data = nullptr;  // null: only scores() will be called
  Index batch = 0;
  OptimizerProblem optimizer = {};  // without tensors
  LossScale loss_scale = {};        // if the type is f16
  bool one_kernel = true;           // trains many steps by one kernel, if the network and the device allow it
  // Processes that share each batch, all with the same assignment; null: only this one.
  parallel::ProcessGroup* group = nullptr;
  std::vector<Device> others = {};  // of this process; they share each batch with `device`
};

// The remaining part of an epoch.
struct Epoch {
  std::shared_ptr<std::vector<Index> const> order;  // of all its images; the members of a team share it
  Index first = 0;                                  // images already used
  double loss_sum = 0;                              // over these images
  std::vector<double> rates;                        // of each remaining step
  long long steps_done = 0;                         // since the beginning of the training
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void begin(Epoch epoch) = 0;
  // Prepares the data of `epoch`, the next one, on the host and possibly in the device's memory, while the
  // last steps of the current one are in flight. Optional.
  virtual void prepare_epoch([[maybe_unused]] Epoch const& epoch) {}
  // Runs or enqueues one or a few steps and returns their number; 0 at the end of the epoch.
  virtual Index advance() = 0;
  // Returns the sum over the epoch's images so far; waits for the steps in flight.
  virtual double loss_sum() = 0;
  // Collective: returns whether `mine` is true in any process.
  virtual bool any(bool mine) { return mine; }
  // Copies values and state to the arrays of the parameters, from which all devices start.
  virtual void fetch_parameters() = 0;
  virtual LossScale loss_scale() { return {}; }  // the current one
  // Scores (count, classes) of all images of `data`, in order.
  virtual std::vector<float> scores(Dataset const& data) = 0;
};

std::unique_ptr<Executor> make_executor(Assignment const& assignment);
// The layers of a training as make_executor() would plan them: see Sequence::explain(). Needs no device.
std::string explain(Assignment const& assignment);
// The kinds of executors; each supports every backend with memory of its kind.
std::unique_ptr<Executor> make_host_executor(Assignment const& assignment);  // cpu, reference; no others
std::unique_ptr<Executor> make_device_executor(
    Assignment const& assignment);  // a single device, all backends

// Devices that share each batch, all backends. Throws Error(bad_request) if a batch has fewer images than
// there are devices.
std::unique_ptr<Executor> make_team_executor(Assignment const& assignment);
Context host_context(Assignment const& assignment, bool training);
Context device_context(Assignment const& assignment, bool training);

}  // namespace cosmati::nets
