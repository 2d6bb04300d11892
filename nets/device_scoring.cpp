// The scores of a device's network: by its fused kernel, which is loaded already, or by layers in batches.
#include <algorithm>

#include "nets/device_executor.h"

namespace cosmati::nets {

// Any of its kernels would do; that for full batches has the most images per block.
FusedTraining* DeviceExecutor::fused_scoring() {
  if (assignment_.data == nullptr) return nullptr;
  return fused(std::min(assignment_.batch, assignment_.data->count()));
}

std::vector<float> DeviceExecutor::scores(Dataset const& data, Index first, Index count) {
  if (count == 0) return {};
  Scoring& now = scoring(data, first, count);
  // The first scoring after a step also downloads the parameters: the host computes their fingerprint while
  // the device scores.
  bool const copies = copies_.bytes() > 0 && !fingerprint_;
  Moment copied;
  if (copies) {
    std::byte* to = copies_.as<std::byte>();
    queue_.download(to, values_.data(), values_.bytes());
    to += values_.bytes();
    for (DeviceMemory const& state : states_) {
      queue_.download(to, state.data(), state.bytes());
      to += state.bytes();
    }
    copied = Moment(assignment_.device);
    queue_.mark(copied);
  }
  std::size_t const bytes = now.scores.bytes();
  auto* const scores = static_cast<float*>(now.scores.data());
  for (Index b = 0; b * now.size < count; ++b) {
    if (now.batch) {
      now.batch->gather(static_cast<int const*>(now.order.data()) + b * now.size, queue_);
      now.batch->network().infer(values(), scores, queue_, narrow(false));
    } else {
      FusedTrainingArguments arguments = images_of(data);
      arguments.rows = static_cast<unsigned char const*>(now.order.data());
      arguments.values = values();
      fused_scoring()->score(arguments, count, scores, queue_);
    }
    queue_.download(now.all.as<std::byte>() + static_cast<std::size_t>(b) * bytes, now.scores.data(), bytes);
  }
  if (copies) {
    copied.wait();
    fingerprint_ = fingerprint_of_copies();
  }
  queue_.wait();
  return {now.all.as<float>(), now.all.as<float>() + count * now.classes};
}

DeviceExecutor::Scoring& DeviceExecutor::scoring(Dataset const& data, Index first, Index count) {
  Scoring& known = scoring_[{&data, first, count}];
  if (known.size != 0) return known;
  Device const& device = assignment_.device;
  Index const size = fused_scoring() != nullptr ? count : std::min<Index>(count, 5000);
  Index const batches = (count + size - 1) / size;
  if (fused_scoring() == nullptr)
    known.batch = std::make_unique<Batch>(assignment_, false, resident(data), size);
  known.classes = known.batch ? known.batch->network().classes() : network_.classes();
  constexpr Index fewest = 4;  // see FusedTraining::score()
  std::vector<int> order(static_cast<std::size_t>(std::max(batches * size, fewest)));
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int>(first + std::min(static_cast<Index>(i), count - 1));
  known.order = DeviceMemory(device, order.size() * sizeof(int));
  known.order.upload(order.data(), known.order.bytes());
  known.scores = DeviceMemory(device, static_cast<std::size_t>(size * known.classes) * sizeof(float));
  known.all = HostMemory(device, static_cast<std::size_t>(batches) * known.scores.bytes());
  known.size = size;
  return known;
}

}  // namespace cosmati::nets
