// Training on one device that holds everything: images, parameters, optimiser state, whole batches. Steps are
// recorded once and repeated, several at a time; what differs between repetitions (which images, the learning
// rate) is data that the host writes ahead of them. The host waits once an epoch, for the losses.
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "cosmati/ops/gather.h"
#include "cosmati/ops/queue.h"
#include "nets/executor.h"

namespace cosmati::nets {
namespace {

// An array of one step among those of others: no promise beyond its elements.
TensorDescription part_of_many(DataType type, Index count) {
  TensorDescription result = describe(type, Shape(count));
  result.alignment = size_of(type);
  return result;
}

// Images of a data set in the device's memory, as rows of pixels.
struct Resident {
  DeviceMemory pixels;
  TensorDescription description;

  Resident(Device const& device, Dataset const& data)
      : pixels(device, data.images.bytes()),
        description(describe(DataType::u8, Shape(data.count(), data.height() * data.width()))) {
    pixels.upload(data.images.data(), data.images.bytes());
  }
};

// A network for one batch size with the way of images into it.
class Batch {
 public:
  Batch(Assignment const& assignment, bool training, Resident const& images, Index size)
      : images_(images), size_(size) {
    network_ = assignment.make(device_context(assignment, training), size);
    GatherProblem problem;
    problem.x = images.description;
    problem.order = part_of_many(DataType::s32, size);
    problem.y = describe(DataType::f32, Shape(size, images.description.extent(1)));
    problem.scale = 1 / (255 * assignment.statistics.deviation);
    problem.shift = -assignment.statistics.mean / assignment.statistics.deviation;
    gather_ = cosmati::prepare(make_plan(problem, assignment.device));
    network_->prepare();
  }

  Index size() const { return size_; }
  Sequence& network() { return *network_; }
  void gather(int const* order, Stream stream) {
    gather_.run({.x = images_.pixels.data(), .order = order, .y = network_->input_data()}, nullptr, stream);
  }

 private:
  Resident const& images_;
  Index size_;
  std::unique_ptr<Sequence> network_;
  Prepared<GatherProblem> gather_;
};

class DeviceExecutor final : public Executor {
 public:
  explicit DeviceExecutor(Assignment const& assignment)
      : assignment_(assignment),
        queue_(assignment.device),
        branch_(assignment.device, queue_),
        most_steps_(static_cast<Stream>(queue_) != nullptr ? 64 : 1),  // who works at once needs no queue
        values_(assignment.device, assignment.parameters.value_bytes()) {
    Parameters& parameters = assignment_.parameters;
    values_.upload(parameters.values(), values_.bytes());
    if (assignment_.data == nullptr) return;
    for (int i = 0; i < parameters.state_count(); ++i) {
      states_.emplace_back(assignment_.device, parameters.state_bytes());
      states_.back().upload(parameters.states(i), parameters.state_bytes());
    }
    gradients_ = DeviceMemory(assignment_.device, static_cast<std::size_t>(parameters.trainable().bytes()));
    gradients_.fill(0);  // the padding between parameters is never written
    OptimizerProblem problem = assignment_.optimizer;
    problem.parameter = problem.gradient = problem.state = parameters.trainable();
    problem.numbers = part_of_many(DataType::f32, 3);
    update_ = prepare(make_plan(problem, assignment_.device));
    workspace_ = DeviceMemory(assignment_.device, update_.workspace_bytes());
    Index const count = assignment_.data->count();
    batch_bytes_ = static_cast<std::size_t>(assignment_.batch) * sizeof(int);
    row_bytes_ = 2 * batch_bytes_ + number_bytes;
    rows_ = DeviceMemory(assignment_.device, static_cast<std::size_t>(most_steps_) * row_bytes_);
    recorded_losses_ =
        DeviceMemory(assignment_.device, static_cast<std::size_t>(most_steps_) * sizeof(float));
    auto const steps = static_cast<std::size_t>((count + assignment_.batch - 1) / assignment_.batch);
    host_rows_ = HostMemory(assignment_.device, steps * row_bytes_);
    host_losses_ = HostMemory(assignment_.device, steps * sizeof(float));
    for (Index const size : {std::min(assignment_.batch, count), count % assignment_.batch})
      if (size > 0) training_batch(size);
  }

  void begin(Epoch epoch) override {
    queue_.wait();  // what the last epoch read and wrote
    epoch_ = std::move(epoch);
    next_ = epoch_.first;
    enqueued_ = read_ = 0;
    auto const count = static_cast<Index>(epoch_.order.size());
    std::byte* row = host_rows_.as<std::byte>();
    for (std::size_t step = 0; step < epoch_.rates.size(); ++step, row += row_bytes_) {
      Index const first = epoch_.first + static_cast<Index>(step) * assignment_.batch;
      Index const size = std::min(assignment_.batch, count - first);
      int* const order = reinterpret_cast<int*>(row);
      int* const labels = reinterpret_cast<int*>(row + batch_bytes_);
      for (Index i = 0; i < size; ++i) {
        Index const image = epoch_.order[static_cast<std::size_t>(first + i)];
        order[i] = static_cast<int>(image);
        labels[i] = assignment_.data->labels[static_cast<std::size_t>(image)];
      }
      StepNumbers const now = step_numbers(assignment_.optimizer, epoch_.rates[step],
                                           epoch_.steps_done + static_cast<long long>(step) + 1);
      float const numbers[] = {static_cast<float>(now.rate), static_cast<float>(now.correction1),
                               static_cast<float>(now.correction2)};
      std::memcpy(row + 2 * batch_bytes_, numbers, sizeof(numbers));
    }
  }

  Index advance() override {
    Index const left = static_cast<Index>(epoch_.order.size()) - next_;
    if (left == 0) return 0;
    Index const size = std::min(assignment_.batch, left);
    Index const steps = std::min(most_steps_, left / size);
    auto const at = static_cast<std::size_t>(enqueued_);
    queue_.upload(rows_.data(), host_rows_.as<std::byte>() + at * row_bytes_,
                  static_cast<std::size_t>(steps) * row_bytes_);
    recording(size, steps).put(queue_);
    queue_.download(host_losses_.as<float>() + at, recorded_losses_.data(),
                    static_cast<std::size_t>(steps) * sizeof(float));
    enqueued_ += steps;
    next_ += steps * size;
    return steps;
  }

  double loss_sum() override {
    queue_.wait();
    auto const count = static_cast<Index>(epoch_.order.size());
    for (; read_ < enqueued_; ++read_) {
      Index const size = std::min(assignment_.batch, count - epoch_.first);
      epoch_.loss_sum += static_cast<double>(host_losses_.as<float>()[read_]) * static_cast<double>(size);
      epoch_.first += size;
    }
    return epoch_.loss_sum;
  }

  void fetch_parameters() override {
    if (assignment_.data == nullptr) return;
    queue_.wait();
    Parameters& parameters = assignment_.parameters;
    values_.download(parameters.values(), values_.bytes());
    for (std::size_t i = 0; i < states_.size(); ++i)
      states_[i].download(parameters.states(static_cast<int>(i)), states_[i].bytes());
  }

  std::vector<float> scores(Dataset const& data) override {
    Index const count = data.count(), size = std::min<Index>(count, 1000),
                batches = (count + size - 1) / size;
    Batch& batch = scoring_batch(data, size);
    Index const classes = batch.network().classes();
    std::vector<int> order(static_cast<std::size_t>(batches * size));
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int>(std::min(static_cast<Index>(i), count - 1));
    DeviceMemory device_order(assignment_.device, order.size() * sizeof(int));
    device_order.upload(order.data(), device_order.bytes());
    auto const bytes = static_cast<std::size_t>(size * classes) * sizeof(float);
    DeviceMemory device_scores(assignment_.device, bytes);
    HostMemory const all(assignment_.device, static_cast<std::size_t>(batches) * bytes);
    for (Index b = 0; b < batches; ++b) {
      batch.gather(static_cast<int const*>(device_order.data()) + b * size, queue_);
      batch.network().infer(values(), static_cast<float*>(device_scores.data()), queue_);
      queue_.download(all.as<std::byte>() + static_cast<std::size_t>(b) * bytes, device_scores.data(), bytes);
    }
    queue_.wait();
    return {all.as<float>(), all.as<float>() + count * classes};
  }

 private:
  static constexpr std::size_t number_bytes = 16;  // of a step: three and a gap

  float* values() { return static_cast<float*>(values_.data()); }

  Resident const& resident(Dataset const& data) {
    auto& known = residents_[&data];
    if (!known) known = std::make_unique<Resident>(assignment_.device, data);
    return *known;
  }

  Batch& training_batch(Index size) {
    auto& known = training_[size];
    if (!known) known = std::make_unique<Batch>(assignment_, true, resident(*assignment_.data), size);
    return *known;
  }
  Batch& scoring_batch(Dataset const& data, Index size) {
    auto& known = scoring_[{&data, size}];
    if (!known) known = std::make_unique<Batch>(assignment_, false, resident(data), size);
    return *known;
  }

  // The step whose images, labels and numbers are in row `row`.
  void step(Batch& batch, Index row, Stream stream) {
    std::byte* const now = static_cast<std::byte*>(rows_.data()) + static_cast<std::size_t>(row) * row_bytes_;
    float* const gradients = static_cast<float*>(gradients_.data());
    batch.gather(reinterpret_cast<int const*>(now), stream);
    batch.network().loss_and_gradients(values(), reinterpret_cast<int const*>(now + batch_bytes_),
                                       static_cast<float*>(recorded_losses_.data()) + row, gradients, stream,
                                       &branch_);
    update_.run({.parameter = values(),
                 .gradient = gradients,
                 .velocity = states_[0].data(),
                 .second = states_.size() > 1 ? states_[1].data() : nullptr,
                 .numbers = now + 2 * batch_bytes_},
                workspace_.data(), stream);
  }

  Recording const& recording(Index size, Index steps) {
    auto const known = recordings_.find({size, steps});
    if (known != recordings_.end()) return known->second;
    Batch& batch = training_batch(size);
    return recordings_[{size, steps}] = Recording(queue_, [this, &batch, steps](Stream stream) {
             for (Index row = 0; row < steps; ++row) step(batch, row, stream);
           });
  }

  Assignment assignment_;
  Queue queue_;
  Branch branch_;
  Index most_steps_;  // of a recording
  DeviceMemory values_, gradients_, workspace_;
  std::vector<DeviceMemory> states_;
  std::map<Dataset const*, std::unique_ptr<Resident>> residents_;
  std::map<Index, std::unique_ptr<Batch>> training_;
  std::map<std::pair<Dataset const*, Index>, std::unique_ptr<Batch>> scoring_;
  Prepared<OptimizerProblem> update_;
  // A row is what one step reads: which images, their labels, the optimiser's numbers.
  std::size_t batch_bytes_ = 0, row_bytes_ = 0;
  DeviceMemory rows_, recorded_losses_;                      // of the steps of one recording
  HostMemory host_rows_, host_losses_;                       // of an epoch
  std::map<std::pair<Index, Index>, Recording> recordings_;  // by batch and steps
  Epoch epoch_;                               // its first and loss_sum: of the steps whose losses were read
  Index next_ = 0, enqueued_ = 0, read_ = 0;  // image; steps since begin()
};

}  // namespace

Context device_context(Assignment const& assignment, bool training) {
  Context context{assignment.device};
  context.training = training;
  context.fuse = context.branch = true;
  context.factors = assignment.factors;
  return context;
}

std::unique_ptr<Executor> make_device_executor(Assignment const& assignment) {
  if (assignment.group != nullptr)
    throw Error(ErrorCode::unavailable, std::string("processes share batches on the backend cpu, not on ") +
                                            name_of(assignment.device.backend));
  return std::make_unique<DeviceExecutor>(assignment);
}

}  // namespace cosmati::nets
