// Compiles and loads a cooperative kernel.
#include "src/backend/cuda/cooperative.h"

#include "src/backend/cuda/executor.h"
#include "src/backend/cuda/kernels.h"

namespace cosmati::cuda {

CooperativeKernel::CooperativeKernel(program::KernelSpec const& kernel, Gpu const& gpu)
    : threads_(kernel.threads), shared_bytes_(kernel.shared_bytes) {
  function_ = load_kernel(gpu.ordinal, kernel_source(kernel, gpu));
  function_.allow_shared_bytes(static_cast<int>(shared_bytes_));
}

int CooperativeKernel::resident_blocks() const {
  return function_.blocks_per_multiprocessor(static_cast<int>(threads_), static_cast<int>(shared_bytes_));
}

}  // namespace cosmati::cuda
