// Allocation and copies, with the driver or on the host.
#include "cosmati/ops/memory.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/driver/resources.h"
#include "src/ops/host_allocation.h"

namespace cosmati {
namespace {

std::shared_ptr<std::byte> allocate_on_gpu(int ordinal, std::size_t bytes) {
  auto buffer = std::make_shared<cuda::DeviceBuffer>(ordinal, bytes);
  auto* const data = static_cast<std::byte*>(buffer->data());
  return {std::move(buffer), data};
}

std::shared_ptr<std::byte> allocate_on_host(std::size_t bytes) {
  void* const memory = allocate_aligned(bytes);
  if (memory == nullptr)
    throw Error(ErrorCode::out_of_memory, "no memory for " + std::to_string(bytes) + " bytes");
  return {static_cast<std::byte*>(memory), [](std::byte* data) { free_aligned(data); }};
}

}  // namespace

DeviceMemory::DeviceMemory(Device const& device, std::size_t bytes)
    : on_gpu_(device.backend == Backend::cuda),
      ordinal_(device.gpu.ordinal),
      bytes_(bytes),
      memory_(on_gpu_ ? allocate_on_gpu(ordinal_, bytes) : allocate_on_host(bytes)) {}

std::byte* DeviceMemory::range(std::size_t bytes, std::size_t at, char const* verb) const {
  if (at <= bytes_ && bytes <= bytes_ - at) return memory_.get() + at;
  throw Error(ErrorCode::bad_request, std::string(verb) + " of " + std::to_string(bytes) + " bytes at " +
                                          std::to_string(at) + " exceeds a memory of " +
                                          std::to_string(bytes_) + " bytes");
}

void DeviceMemory::upload(void const* source, std::size_t bytes, std::size_t at) {
  std::byte* const target = range(bytes, at, "an upload");
  if (bytes == 0) return;
  if (!on_gpu_) {
    std::memcpy(target, source, bytes);
    return;
  }
  cuda::copy_to_device(ordinal_, target, source, bytes, nullptr);
  cuda::wait(ordinal_, nullptr);
}

void DeviceMemory::download(void* target, std::size_t bytes, std::size_t at) const {
  std::byte const* const source = range(bytes, at, "a download");
  if (bytes == 0) return;
  if (!on_gpu_) {
    std::memcpy(target, source, bytes);
    return;
  }
  cuda::copy_to_host(ordinal_, target, source, bytes, nullptr);
  cuda::wait(ordinal_, nullptr);
}

void DeviceMemory::fill(unsigned char value) {
  if (bytes_ == 0) return;
  if (!on_gpu_) {
    std::memset(memory_.get(), value, bytes_);
    return;
  }
  cuda::fill(ordinal_, memory_.get(), value, bytes_, nullptr);
  cuda::wait(ordinal_, nullptr);
}

void wait(Device const& device, Stream stream) {
  if (device.backend == Backend::cuda) cuda::wait(device.gpu.ordinal, stream);
}

}  // namespace cosmati
