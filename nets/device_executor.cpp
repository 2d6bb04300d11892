// Training on one device: its memory, the operations of a step, and their recording.
#include "nets/device_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::nets {
namespace {

// Minimum size in bytes of the pieces in which gradients are summed over a team, since a sum takes at least
// ten microseconds.
constexpr std::size_t bucket_bytes = std::size_t{1} << 16;

// Steps of a launch that trains by one kernel: enough that a busy host does not delay the device, and few
// enough to stop soon.
constexpr Index max_fused_steps = 1024;

// An input is byte * scale + shift.
std::pair<double, double> scale_and_shift(PixelStatistics const& statistics) {
  return {1 / (255 * statistics.deviation), -statistics.mean / statistics.deviation};
}

// The array of one step, stored among those of others: its alignment is only that of its elements.
TensorDescription part_of_many(DataType type, Index count) {
  TensorDescription result = describe(type, Shape(count));
  result.alignment = size_of(type);
  return result;
}

// Computes the next scale and the next number of good steps from a step's scale (acc), sum of gradients and
// number of good steps.
std::string loss_scale_text() {
  constexpr double largest = 1 << 24;
  return fmt::format(
      "let n = good[i] + 1; let fine = abs(sum[i]) <= 3.4028234e38; "
      "store(counted, select(fine, select(n >= {0}, 0, n), 0)); "
      "select(fine, select(n >= {0}, min(acc * 2, {1}), acc), max(acc / 2, 1))",
      LossScale::growth_steps, largest);
}

// The starts of the pieces that are summed as soon as they are complete, from the last piece to the one at 0.
std::vector<Index> bucket_starts(Assignment const& assignment, Sequence const& network) {
  std::vector<Index> starts;
  Index end = assignment.parameters.trainable().extent(0);
  for (Index const first : network.gradient_starts()) {
    if (first > 0 && static_cast<std::size_t>(end - first) * sizeof(float) < bucket_bytes) continue;
    starts.push_back(end = first);
  }
  return starts;
}

}  // namespace

Resident::Resident(Device const& device, Dataset const& data)
    : pixels(device, data.images.bytes()),
      description(describe(DataType::u8, Shape(data.count(), data.height() * data.width()))) {
  pixels.upload(data.images.data(), data.images.bytes());
}

Batch::Batch(Assignment const& assignment, bool training, Resident const& images, Index size)
    : images_(images), size_(size) {
  network_ = assignment.make(device_context(assignment, training), size);
  GatherProblem problem;
  problem.x = images.description;
  problem.order = part_of_many(DataType::s32, size);
  problem.y = describe(network_->input().type, Shape(size, images.description.extent(1)));
  std::tie(problem.scale, problem.shift) = scale_and_shift(assignment.statistics);
  gather_ = cosmati::prepare(make_plan(problem, assignment.device));
  network_->prepare();
}

void Batch::gather(int const* order, Stream stream) {
  gather_.run({.x = images_.pixels.data(), .order = order, .y = network_->input_data()}, nullptr, stream);
}

DeviceExecutor::DeviceExecutor(Assignment const& assignment, Membership const& membership)
    : assignment_(assignment),
      membership_(membership),
      queue_(assignment.device),
      branch_(assignment.device, queue_),
      sums_(assignment.device, branch_.side()),
      max_steps_(static_cast<Stream>(queue_) != nullptr ? 64 : 1),  // synchronous devices need no queue
      values_(assignment.device, assignment.parameters.value_bytes()),
      ahead_(assignment.device) {
  Parameters& parameters = assignment_.parameters;
  values_.upload(parameters.values(), values_.bytes());
  prepare_update();
  refresh_factors(queue_);
  if (assignment_.data == nullptr) return;
  for (int i = 0; i < parameters.state_count(); ++i) {
    states_.emplace_back(assignment_.device, parameters.state_bytes());
    states_.back().upload(parameters.states(i), parameters.state_bytes());
  }
  gradients_ = DeviceMemory(assignment_.device, static_cast<std::size_t>(parameters.trainable().bytes()));
  gradients_.fill(0);  // the padding between parameters is never written
  Index const count = assignment_.data->count();
  Index const max_images = (assignment_.batch + membership_.of - 1) / membership_.of;
  batch_bytes_ = static_cast<std::size_t>(max_images) * sizeof(int);
  row_bytes_ = 2 * batch_bytes_ + number_bytes;
  Index const largest = std::min(assignment_.batch, count);
  if (membership_.one_kernel && assignment_.one_kernel)
    network_ = assignment_.make(device_context(assignment_, false), 1)->compose();
  if (fused(largest) != nullptr) {
    if (max_steps_ > 1) max_steps_ = std::min(max_fused_steps, (count + largest - 1) / largest);
    resident(*assignment_.data);
  }
  rows_ = DeviceMemory(assignment_.device, static_cast<std::size_t>(max_steps_) * row_bytes_);
  recorded_losses_ = DeviceMemory(assignment_.device, static_cast<std::size_t>(max_steps_) * sizeof(float));
  auto const steps = static_cast<std::size_t>((count + assignment_.batch - 1) / assignment_.batch);
  host_rows_ = HostMemory(assignment_.device, steps * row_bytes_);
  next_rows_ = HostMemory(assignment_.device, steps * row_bytes_);
  host_losses_ = HostMemory(assignment_.device, steps * sizeof(float));
  if (membership_.sums != nullptr) {
    copies_ =
        HostMemory(assignment_.device,
                   values_.bytes() + states_.size() * static_cast<std::size_t>(parameters.state_bytes()));
    auto const network = assignment_.make(device_context(assignment_, true), 1);
    bucket_starts_ = bucket_starts(assignment_, *network);
    classes_ = network->classes();
  }
  for (Index const size : {largest, count % assignment_.batch})
    if (auto const [first, last] = share(size); last > first && fused(size) == nullptr)
      training_batch(last - first);
  if (fused_sizes().empty()) return;
  for (DeviceMemory* const rows : {&fused_rows_, &next_fused_rows_})
    *rows = DeviceMemory(assignment_.device, steps * row_bytes_);
}

void DeviceExecutor::warm_up() {
  auto const sum = [&](DeviceMemory const& zeros, Index first, Index last) {
    membership_.sums->sum(static_cast<float*>(zeros.data()) + first, static_cast<std::size_t>(last - first),
                          1, queue_);
  };
  Index last = assignment_.parameters.trainable().extent(0);
  for (Index const first : bucket_starts_) sum(gradients_, first, std::exchange(last, first));
  recorded_losses_.fill(0);
  sum(recorded_losses_, 0, max_steps_);
  queue_.wait();
}

void DeviceExecutor::prepare_update() {
  Device const& device = assignment_.device;
  TensorDescription const flat = assignment_.parameters.trainable();
  TensorDescription narrow = flat;
  narrow.type = assignment_.type;
  std::size_t bytes = 0;
  auto const make = [&](auto& target, auto const& problem) {
    target = prepare(make_plan(problem, device));
    bytes = std::max(bytes, target.workspace_bytes());
  };
  if (assignment_.type != DataType::f32) {
    factors_ = DeviceMemory(device, static_cast<std::size_t>(narrow.bytes()));
    make(convert_, TransformProblem{flat, narrow});
  }
  if (assignment_.data != nullptr) {
    OptimizerProblem problem = assignment_.optimizer;
    problem.parameter = problem.gradient = problem.state = flat;
    problem.numbers = part_of_many(DataType::f32, 3);
    if (assignment_.type == DataType::f16) {
      float const begin[] = {assignment_.loss_scale.scale, 0, assignment_.loss_scale.good_steps};
      scaling_ = DeviceMemory(device, sizeof(begin));
      scaling_.upload(begin, sizeof(begin));
      problem.scaling = part_of_many(DataType::f32, 2);
      TensorDescription const one = part_of_many(DataType::f32, 1);
      ReduceProblem sum;
      sum.x = flat;
      sum.y = one;
      make(sum_gradients_, sum);
      ElementwiseProblem next;
      next.x = next.y = one;
      next.epilogue = {epilogue::parse(loss_scale_text(), elementwise_indices(1)), {one, one}, {one}};
      make(rescale_, next);
    }
    make(update_, problem);
  }
  workspace_ = DeviceMemory(device, bytes);
}

void DeviceExecutor::refresh_factors(Stream stream) {
  if (factors_.bytes() > 0) convert_.run({.x = values(), .y = factors_.data()}, workspace_.data(), stream);
}

Narrow DeviceExecutor::narrow(bool training) const {
  Narrow result;
  if (factors_.bytes() > 0) result.factors = static_cast<std::byte const*>(factors_.data());
  if (training && scaling_.bytes() > 0) result.gradient_scale = static_cast<float const*>(scaling_.data());
  return result;
}

void DeviceExecutor::update(void const* numbers, Stream stream) {
  auto* const scale = static_cast<float*>(scaling_.data());
  bool const scaled = scaling_.bytes() > 0;
  float *const sum = scaled ? scale + 1 : nullptr, *const good = scaled ? scale + 2 : nullptr;
  if (scaled) sum_gradients_.run({.x = gradients(), .y = sum}, workspace_.data(), stream);
  update_.run({.parameter = values(),
               .gradient = gradients(),
               .velocity = states_[0].data(),
               .second = states_.size() > 1 ? states_[1].data() : nullptr,
               .numbers = numbers,
               .scaling = scaled ? scale : nullptr},
              workspace_.data(), stream);
  refresh_factors(stream);
  if (!scaled) return;
  void const* const operands[] = {sum, good};
  void* const stores[] = {good};
  rescale_.run({.x = scale, .y = scale, .operands = operands, .stores = stores}, workspace_.data(), stream);
}

std::pair<Index, Index> DeviceExecutor::share(Index size) const {
  auto const [first, last] = cpu::share(size, membership_.number, membership_.of);
  return {first, last};
}

void DeviceExecutor::begin(Epoch epoch) {
  // Waits until the last epoch's buffers are no longer in use; if the fingerprint is known, none of them is.
  if (!fingerprint_) queue_.wait();
  if (next_rows_of_ == epoch.steps_done && epoch.first == 0) {
    std::swap(host_rows_, next_rows_);
    std::swap(fused_rows_, next_fused_rows_);
  } else {
    fill_rows(epoch, host_rows_);
    copy_rows(fused_rows_, host_rows_, epoch.rates.size(), queue_);
  }
  next_rows_of_.reset();
  last_epoch_ = std::exchange(epoch_, std::move(epoch));
  next_ = epoch_.first;
  enqueued_ = read_ = 0;
}

void DeviceExecutor::prepare_epoch(Epoch const& epoch) {
  last_epoch_ = {};
  fill_rows(epoch, next_rows_);
  copy_rows(next_fused_rows_, next_rows_, epoch.rates.size(), ahead_);
  ahead_.wait();
  next_rows_of_ = epoch.steps_done;
}

void DeviceExecutor::copy_rows(DeviceMemory& to, HostMemory const& rows, std::size_t steps, Queue& queue) {
  if (to.bytes() > 0) queue.upload(to.data(), rows.as<std::byte>(), steps * row_bytes_);
}

void DeviceExecutor::fill_rows(Epoch const& epoch, HostMemory& rows) {
  auto const count = static_cast<Index>(epoch.order->size());
  std::byte* row = rows.as<std::byte>();
  for (std::size_t step = 0; step < epoch.rates.size(); ++step, row += row_bytes_) {
    Index const first = epoch.first + static_cast<Index>(step) * assignment_.batch;
    auto const mine = share(std::min(assignment_.batch, count - first));
    int* const order = reinterpret_cast<int*>(row);
    int* const labels = reinterpret_cast<int*>(row + batch_bytes_);
    for (Index i = mine.first; i < mine.second; ++i) {
      Index const image = (*epoch.order)[static_cast<std::size_t>(first + i)];
      order[i - mine.first] = static_cast<int>(image);
      labels[i - mine.first] = assignment_.data->labels[static_cast<std::size_t>(image)];
    }
    StepNumbers const now = step_numbers(assignment_.optimizer, epoch.rates[step],
                                         epoch.steps_done + static_cast<long long>(step) + 1);
    float const numbers[] = {static_cast<float>(now.rate), static_cast<float>(now.correction1),
                             static_cast<float>(now.correction2)};
    std::memcpy(row + 2 * batch_bytes_, numbers, sizeof(numbers));
  }
}

Index DeviceExecutor::advance() {
  Index const left = static_cast<Index>(epoch_.order->size()) - next_;
  if (left == 0) return 0;
  fingerprint_.reset();
  Index const size = std::min(assignment_.batch, left);
  Index const steps = std::min(max_steps_, left / size);
  auto const at = static_cast<std::size_t>(enqueued_);
  if (FusedTraining* const training = fused(size)) {
    run_fused(*training, size, steps);
  } else {
    queue_.upload(rows_.data(), host_rows_.as<std::byte>() + at * row_bytes_,
                  static_cast<std::size_t>(steps) * row_bytes_);
    recording(size, steps).put(queue_);
    queue_.download(host_losses_.as<float>() + at, recorded_losses_.data(),
                    static_cast<std::size_t>(steps) * sizeof(float));
  }
  enqueued_ += steps;
  next_ += steps * size;
  return steps;
}

double DeviceExecutor::loss_sum() {
  queue_.wait();
  auto const count = static_cast<Index>(epoch_.order->size());
  for (; read_ < enqueued_; ++read_) {
    Index const size = std::min(assignment_.batch, count - epoch_.first);
    epoch_.loss_sum += static_cast<double>(host_losses_.as<float>()[read_]) * static_cast<double>(size);
    epoch_.first += size;
  }
  return epoch_.loss_sum;
}

void DeviceExecutor::fetch_parameters() {
  if (assignment_.data == nullptr) return;
  queue_.wait();
  Parameters& parameters = assignment_.parameters;
  values_.download(parameters.values(), values_.bytes());
  for (std::size_t i = 0; i < states_.size(); ++i)
    states_[i].download(parameters.states(static_cast<int>(i)), states_[i].bytes());
}

std::uint64_t DeviceExecutor::fingerprint() {
  if (fingerprint_) return *fingerprint_;
  queue_.wait();
  std::uint64_t result = nets::fingerprint(values_);
  for (DeviceMemory const& state : states_) result = nets::fingerprint(state, result);
  return result;
}

std::uint64_t DeviceExecutor::fingerprint_of_copies() const {
  return nets::fingerprint({copies_.as<std::uint32_t>(), copies_.bytes() / sizeof(std::uint32_t)});
}

LossScale DeviceExecutor::loss_scale() {
  if (scaling_.bytes() == 0) return assignment_.loss_scale;
  queue_.wait();
  float now[3] = {};
  scaling_.download(now, sizeof(now));
  return {now[0], now[2]};
}

Resident const& DeviceExecutor::resident(Dataset const& data) {
  auto& known = residents_[&data];
  if (!known) known = std::make_unique<Resident>(assignment_.device, data);
  return *known;
}

Batch& DeviceExecutor::training_batch(Index size) {
  auto& known = training_[size];
  if (!known) known = std::make_unique<Batch>(assignment_, true, resident(*assignment_.data), size);
  return *known;
}

double DeviceExecutor::weight(Index size) const {
  auto const [first, last] = share(size);
  return static_cast<double>(last - first) / static_cast<double>(size);
}

void DeviceExecutor::step(Index size, Index row, Stream stream) {
  std::byte* const now = static_cast<std::byte*>(rows_.data()) + static_cast<std::size_t>(row) * row_bytes_;
  float* const loss = static_cast<float*>(recorded_losses_.data()) + row;
  auto summed = bucket_starts_.begin();
  Index end = assignment_.parameters.trainable().extent(0);
  Sequence::Ready const ready = [&](Index first) {
    if (summed == bucket_starts_.end() || first > *summed) return;
    membership_.sums->sum(gradients() + first, static_cast<std::size_t>(end - first), weight(size),
                          sums_.fork());
    end = first;
    if (++summed == bucket_starts_.end()) sums_.join();
  };
  if (auto const [first, last] = share(size); last > first) {
    Batch& batch = training_batch(last - first);
    batch.gather(reinterpret_cast<int const*>(now), stream);
    batch.network().loss_and_gradients(values(), reinterpret_cast<int const*>(now + batch_bytes_), loss,
                                       gradients(), stream, &branch_,
                                       membership_.sums == nullptr ? Sequence::Ready() : ready, narrow(true));
  } else {  // contributes nothing, but takes part in the sum
    queue_.fill(loss, 0, sizeof(float));
    queue_.fill(gradients(), 0, gradients_.bytes());
    branch_.fork();
    for (Index const start : bucket_starts_) ready(start);
    branch_.join();
  }
  update(now + 2 * batch_bytes_, stream);
}

Recording const& DeviceExecutor::recording(Index size, Index steps) {
  auto const known = recordings_.find({size, steps});
  if (known != recordings_.end()) return known->second;
  if (auto const [first, last] = share(size); last > first) training_batch(last - first);
  return recordings_[{size, steps}] = Recording(queue_, [this, size, steps](Stream stream) {
           for (Index row = 0; row < steps; ++row) step(size, row, stream);
           if (membership_.sums != nullptr)
             membership_.sums->sum(static_cast<float*>(recorded_losses_.data()),
                                   static_cast<std::size_t>(steps), weight(size), stream);
         });
}

std::vector<Index> DeviceExecutor::fused_sizes() const {
  std::vector<Index> sizes;
  for (auto const& [size, training] : fused_)
    if (training) sizes.push_back(size);
  return sizes;
}

FusedTraining* DeviceExecutor::fused(Index size) {
  auto const known = fused_.find(size);
  if (known != fused_.end()) return known->second.get();
  auto const [first, last] = share(size);
  FusedPlan const plan = plan_fused(network_, last - first, assignment_.optimizer, assignment_.device,
                                    assignment_.factors, membership_.sums != nullptr);
  auto& training = fused_[size];
  // All members have images, or none of them has a fused kernel.
  if (plan.refusal.empty() && size >= membership_.of) training = std::make_unique<FusedTraining>(plan);
  return training.get();
}

bool DeviceExecutor::enqueues_one_kernel() {
  char const* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  bool const waits = blocking != nullptr && std::string_view(blocking) != "0";
  Index const left = static_cast<Index>(epoch_.order->size()) - next_;
  return static_cast<Stream>(queue_) != nullptr && !waits && left > 0 &&
         fused(std::min(assignment_.batch, left)) != nullptr;
}

void DeviceExecutor::train_by_layers(Index size) {
  fused_[size] = nullptr;
  if (auto const [first, last] = share(size); last > first) training_batch(last - first);
}

FusedTrainingArguments DeviceExecutor::images_of(Dataset const& data) {
  FusedTrainingArguments arguments;
  arguments.pixels = static_cast<unsigned char const*>(resident(data).pixels.data());
  auto const [scale, shift] = scale_and_shift(assignment_.statistics);
  arguments.scale = static_cast<float>(scale);
  arguments.shift = static_cast<float>(shift);
  return arguments;
}

void DeviceExecutor::run_fused(FusedTraining& training, Index size, Index steps) {
  FusedTrainingArguments arguments = images_of(*assignment_.data);
  arguments.rows = static_cast<unsigned char const*>(fused_rows_.data()) +
                   static_cast<std::size_t>(enqueued_) * row_bytes_;
  arguments.row_bytes = static_cast<Index>(row_bytes_);
  arguments.labels_at = static_cast<int>(batch_bytes_);
  arguments.numbers_at = static_cast<int>(2 * batch_bytes_);
  arguments.steps = static_cast<int>(steps);
  arguments.total = static_cast<int>(size);
  arguments.values = values();
  arguments.velocity = static_cast<float*>(states_[0].data());
  if (states_.size() > 1) arguments.second = static_cast<float*>(states_[1].data());
  arguments.losses = host_losses_.as<float>() + enqueued_;  // a copy would delay the next launch
  training.run(arguments, queue_);
}

Context device_context(Assignment const& assignment, bool training) {
  Context context{assignment.device};
  context.training = training;
  context.fuse = context.branch = true;
  context.factors = assignment.factors;
  context.type = assignment.type;
  return context;
}

std::unique_ptr<Executor> make_device_executor(Assignment const& assignment) {
  return std::make_unique<DeviceExecutor>(assignment);
}

}  // namespace cosmati::nets
