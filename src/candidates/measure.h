// What find() measures with: data in the memory of a device, and the time of a call.
#pragma once
#include <deque>
#include <functional>
#include <string_view>

#include "cosmati/ops/memory.h"
#include "cosmati/ops/tensor.h"

namespace cosmati::plan {

// Tensors of random numbers in the memory of one device.
class MeasuredData {
 public:
  explicit MeasuredData(Device const& device) : device_(device) {}

  // Numbers between -1 and 1; `name` tells what must not be negative, and what is an index: zeros.
  void* tensor(std::string_view name, TensorDescription const& description);
  // Pointers to `matrices` such tensors, themselves in that memory.
  void* array(std::string_view name, TensorDescription const& matrix, Index matrices);
  void* workspace(std::size_t bytes);

 private:
  void* allocate(std::size_t bytes);

  Device device_;
  std::deque<DeviceMemory> memory_;
};

// Seconds of one call, which enqueues on a stream: the least on a host, the median on a GPU, of calls for
// about `seconds`. On a GPU they are launches of a CUDA graph of calls, or single calls where one cannot be
// captured. If the first call but one takes longer than `limit`, it is the only one.
double measure(Device const& device, std::function<void(Stream)> const& call, double seconds, double limit);

}  // namespace cosmati::plan
