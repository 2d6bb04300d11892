// Memory of a device, for programs whose data are on the host: device memory on the backend cuda, else host
// memory.
#pragma once
#include <cstddef>
#include <memory>

#include "cosmati/ops/device.h"

namespace cosmati {

// Owns `bytes` bytes, 256-byte aligned; contents undefined. Movable. upload, download and fill are ordered
// after all that was enqueued on the default stream, and done when they return. They throw Error(bad_request)
// for a range that is not inside.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Throws Error(out_of_memory), for cuda with what was free.
  DeviceMemory(Device const& device, std::size_t bytes);
  DeviceMemory(DeviceMemory&&) noexcept = default;
  DeviceMemory& operator=(DeviceMemory&&) noexcept = default;

  void* data() const { return memory_.get(); }  // of the device; not null, even of 0 bytes
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

// Returns when all that was enqueued on `stream` is done; at once for host backends. Errors of kernels that
// ran there are thrown here (ErrorCode::system).
void wait(Device const& device, Stream stream = nullptr);

}  // namespace cosmati
