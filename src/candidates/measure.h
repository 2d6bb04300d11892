// The data and timing of find(): tensors in device memory, and the time of a call.
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

  // Random numbers between -1 and 1; depending on `name`, tensors are non-negative, and indices are zero.
  void* tensor(std::string_view name, TensorDescription const& description);
  // An array of pointers to `matrices` such tensors, also in device memory.
  void* array(std::string_view name, TensorDescription const& matrix, Index matrices);
  void* workspace(std::size_t bytes);

 private:
  void* allocate(std::size_t bytes);

  Device device_;
  std::deque<DeviceMemory> memory_;
};

// Returns the seconds of one call, which enqueues on a stream: the minimum on a host, the median on a GPU, of
// calls for about `seconds`. On a GPU they are launches of a CUDA graph of calls, or single calls if they
// cannot be captured. If the second call takes longer than `limit`, it is the only one.
double measure(Device const& device, std::function<void(Stream)> const& call, double seconds, double limit);

}  // namespace cosmati::plan
