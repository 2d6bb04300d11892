// Queries the driver for the device properties that plans need.
#include "src/backend/cuda/driver/devices.h"

#include <cstddef>
#include <string>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/driver/cufft.h"
#include "src/backend/cuda/driver/driver.h"

namespace cosmati::cuda {

int device_count() {
  int count = 0;
  driver().cuDeviceGetCount(&count);
  return count;
}

Gpu read_gpu(int ordinal) {
  int const count = device_count();
  if (count == 0) throw Error(ErrorCode::unavailable, "the NVIDIA driver sees no device");
  if (ordinal < 0 || ordinal >= count)
    throw Error(ErrorCode::unavailable,
                "device " + std::to_string(ordinal) + " is not available; available devices: 0" +
                    (count == 1 ? std::string() : " to " + std::to_string(count - 1)));
  Ordinal device = 0;
  driver().cuDeviceGet(&device, ordinal);
  auto const ask = [device](DeviceAttribute attribute) {
    int value = 0;
    driver().cuDeviceGetAttribute(&value, attribute, device);
    return value;
  };
  Gpu gpu;
  char name[256] = {};
  driver().cuDeviceGetName(name, static_cast<int>(sizeof name) - 1, device);
  gpu.name = name;
  gpu.ordinal = ordinal;
  gpu.major = ask(DeviceAttribute::capability_major);
  gpu.minor = ask(DeviceAttribute::capability_minor);
  set_rates(gpu);
  gpu.multiprocessors = ask(DeviceAttribute::multiprocessors);
  gpu.shared_bytes_per_block = ask(DeviceAttribute::shared_bytes_per_block);
  gpu.shared_bytes_per_multiprocessor = ask(DeviceAttribute::shared_bytes_per_multiprocessor);
  gpu.registers_per_multiprocessor = ask(DeviceAttribute::registers_per_multiprocessor);
  gpu.threads_per_multiprocessor = ask(DeviceAttribute::threads_per_multiprocessor);
  gpu.blocks_per_multiprocessor = ask(DeviceAttribute::blocks_per_multiprocessor);
  gpu.l2_bytes = ask(DeviceAttribute::l2_bytes);
  std::size_t bytes = 0;
  driver().cuDeviceTotalMem_v2(&bytes, device);
  gpu.memory_bytes = static_cast<long long>(bytes);
  gpu.clock_hertz = 1e3 * ask(DeviceAttribute::clock_kilohertz);
  // Every memory since GDDR makes two transfers per clock. Some devices report no memory clock; the result is
  // 0.
  gpu.memory_bytes_per_second =
      2e3 * ask(DeviceAttribute::memory_clock_kilohertz) * ask(DeviceAttribute::memory_bus_bits) / 8.0;
  gpu.cufft_failure = cufft_failure();
  return gpu;
}

}  // namespace cosmati::cuda
