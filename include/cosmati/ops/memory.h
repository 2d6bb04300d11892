// Device memory on the backend cuda, host memory on the others, for programs whose data are on the host.
#pragma once
#include <cstddef>
#include <memory>

#include "cosmati/ops/device.h"

namespace cosmati {

// Owns `bytes` bytes, 256-byte aligned; contents undefined. Movable. upload, download and fill run after all
// work enqueued on the default stream, and are complete when they return. They throw Error(bad_request) for a
// range outside the memory.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Throws Error(out_of_memory), on cuda with the free memory.
  DeviceMemory(Device const& device, std::size_t bytes);
  DeviceMemory(DeviceMemory&&) noexcept = default;
  DeviceMemory& operator=(DeviceMemory&&) noexcept = default;

  void* data() const { return memory_.get(); }  // device pointer; not null, even for 0 bytes
  std::size_t bytes() const { return bytes_; }
  void upload(void const* source, std::size_t bytes, std::size_t at = 0);
  void download(void* target, std::size_t bytes, std::size_t at = 0) const;
  void fill(unsigned char value);

 private:
  std::byte* range(std::size_t bytes, std::size_t at, char const* verb) const;

  bool on_gpu_ = false;
  int ordinal_ = 0;
  std::size_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

// Waits until all work enqueued on `stream` is complete; returns immediately for host backends. Throws errors
// of kernels that ran on it (ErrorCode::system).
void wait(Device const& device, Stream stream = nullptr);

}  // namespace cosmati
