// Sets of a task's tensors in device memory, filled with normal random numbers.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "cli/operations/task.h"
#include "nets/random.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cli {

// The number of sets of `bytes` each whose total size exceeds twice the L2 cache; 1 if `hot`.
long long sets_needed(long long bytes, long long l2_bytes, bool hot);

class GpuOperands {
 public:
  // Inputs are assembled on the device from random pieces of a few hundred thousand numbers that the host
  // generates for each tensor: no two rows are equal, and gigabytes take milliseconds. Arrays begin
  // offset_of() bytes after a multiple of 256.
  GpuOperands(Task& task, Device const& device, long long sets, Index misalignment, nets::Random& random);

  std::size_t sets() const { return sets_.size(); }
  std::span<void* const> pointers(std::size_t set) const {
    return sets_[set].pointers;
  }                                            // in the order of the slots
  void poison_outputs(std::size_t set) const;  // fills them with 0xff: NaN in every floating-point type
  // Copies a set's tensors to the host, in the order of the slots, after all enqueued work.
  std::vector<Tensor> download(std::size_t set) const;

 private:
  struct Set {
    std::vector<cuda::DeviceBuffer> buffers;
    std::vector<void*> pointers;
  };
  void fill_inputs(Index classes, nets::Random& random);

  int ordinal_;
  std::vector<Slot> slots_;
  std::vector<Set> sets_;
};

}  // namespace cosmati::cli
