// Prepares operations concurrently, since run-time compilation of each takes half a second.
#include "nets/dcgan/training/workbench.h"

#include <atomic>

#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::dcgan {

void Workbench::finish() {
  auto const count = preparations_.size();
  int const threads =
      device_.backend == Backend::cuda
          ? static_cast<int>(std::min<std::size_t>(count, static_cast<std::size_t>(device_.threads)))
          : 1;  // host libraries use threads of their own
  std::atomic<std::size_t> next{0};
  cpu::parallel_parts(threads, [&](int, int) {
    for (std::size_t i; (i = next++) < count;) preparations_[i]();
  });
  preparations_.clear();
  workspace_ = DeviceMemory(device_, bytes_);
}

}  // namespace cosmati::dcgan
