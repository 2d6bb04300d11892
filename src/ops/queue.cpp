// Queues, events and recordings: CUDA driver calls on the cuda backend, plain calls on the others.
#include "cosmati/ops/queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/driver/resources.h"
#include "src/ops/host_allocation.h"

namespace cosmati {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::shared_ptr<void> pinned(int ordinal, std::size_t bytes) {
  auto buffer = std::make_shared<cuda::PinnedBuffer>(ordinal, bytes);
  void* const data = buffer->data();
  return {std::move(buffer), data};
}

std::shared_ptr<void> ordinary(std::size_t bytes) {
  void* const memory = allocate_aligned(bytes);
  if (memory == nullptr)
    throw Error(ErrorCode::out_of_memory, "no memory for " + std::to_string(bytes) + " bytes");
  return {memory, [](void* data) { free_aligned(data); }};
}

}  // namespace

HostMemory::HostMemory(Device const& device, std::size_t bytes)
    : memory_(device.backend == Backend::cuda ? pinned(device.gpu.ordinal, bytes) : ordinary(bytes)),
      bytes_(bytes) {}

bool HostMemory::shared() const {
  bool const more = memory_.use_count() > 1;
  std::atomic_thread_fence(std::memory_order_acquire);  // the previous owner's accesses are complete
  return more;
}

Moment::Moment(Device const& device) {
  if (device.backend == Backend::cuda) event_ = std::make_shared<cuda::Event>(device.gpu.ordinal);
}

void Moment::wait() const {
  if (event_) event_->wait();
}

double Moment::seconds_since(Moment const& earlier) const {
  return event_ ? event_->seconds_since(*earlier.event_) : host_seconds_ - earlier.host_seconds_;
}

Queue::Queue(Device const& device) : device_(device) {
  if (device.backend == Backend::cuda) stream_ = std::make_shared<cuda::OwnedStream>(device.gpu.ordinal);
}

Queue::operator Stream() const { return stream_ ? static_cast<Stream>(*stream_) : nullptr; }

void Queue::upload(void* device_memory, void const* host_memory, std::size_t bytes) {
  if (stream_)
    cuda::copy_to_device(device_.gpu.ordinal, device_memory, host_memory, bytes, *stream_);
  else if (bytes > 0)
    std::memcpy(device_memory, host_memory, bytes);
}

void Queue::download(void* host_memory, void const* device_memory, std::size_t bytes) {
  if (stream_)
    cuda::copy_to_host(device_.gpu.ordinal, host_memory, device_memory, bytes, *stream_);
  else if (bytes > 0)
    std::memcpy(host_memory, device_memory, bytes);
}

void Queue::fill(void* device_memory, unsigned char value, std::size_t bytes) {
  if (stream_)
    cuda::fill(device_.gpu.ordinal, device_memory, value, bytes, *stream_);
  else if (bytes > 0)
    std::memset(device_memory, value, bytes);
}

void Queue::mark(Moment& moment) {
  if (stream_)
    moment.event_->record(*stream_);
  else
    moment.host_seconds_ = now();
}

void Queue::wait_for(Moment const& moment) {
  if (stream_) stream_->wait_for(*moment.event_);
}

void Queue::wait() const {
  if (stream_) stream_->wait();
}

Recording::Recording(Queue& queue, std::function<void(Stream)> work) {
  if (!queue.stream_) {
    work_ = std::move(work);
    return;
  }
  cuda::Capture capture(*queue.stream_);
  work(queue);
  graph_ = std::make_shared<cuda::Graph>(capture.finish());
}

void Recording::put(Queue& queue) const {
  if (graph_)
    graph_->launch(queue);
  else
    work_(queue);
}

}  // namespace cosmati
