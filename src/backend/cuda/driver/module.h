// Machine code on a device: a module from a cubin's bytes, its kernels, and their launch.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cuda {

struct Blocks {
  unsigned x = 1, y = 1, z = 1;
};

// When a kernel may start: after all that was enqueued before it, or, early, while the kernel before it still
// runs, for one that waits for that itself before it touches memory.
enum class Start { in_order, early };

// A kernel. Cheap to copy; keeps its module loaded. Launching is safe from many threads at once.
class Function {
 public:
  // Lets launches ask for up to `bytes` of dynamic shared memory; throws Error(bad_request) with the device's
  // limit if that is more than there is.
  void allow_shared_bytes(int bytes);
  int registers() const { return attribute(FunctionAttribute::registers); }
  int local_bytes() const {
    return attribute(FunctionAttribute::local_bytes);
  }  // of a thread: spills, arrays
  int static_shared_bytes() const { return attribute(FunctionAttribute::static_shared_bytes); }
  int most_threads() const { return attribute(FunctionAttribute::threads_per_block); }
  int blocks_per_multiprocessor(int threads, int shared_bytes) const;
  // How many clusters of so many blocks the whole device runs at the same time.
  int clusters_at_once(int blocks, int threads, int shared_bytes) const;
  std::string const& name() const { return name_; }

  // Enqueues the kernel with the `size` bytes at `params`, a type of that alignment, as its one parameter;
  // they are copied before this returns. Allocates nothing. An empty grid is no launch.
  void launch(Blocks grid, unsigned threads, unsigned shared_bytes, void const* params, std::size_t size,
              std::size_t alignment, Stream stream, Start start = Start::in_order) const;
  template <class Params>
  void launch(Blocks grid, unsigned threads, unsigned shared_bytes, Params const& params, Stream stream,
              Start start = Start::in_order) const {
    launch(grid, threads, shared_bytes, &params, sizeof(Params), alignof(Params), stream, start);
  }

 private:
  friend class Module;
  int attribute(FunctionAttribute which) const;

  std::shared_ptr<void> module_;  // keeps it loaded
  int ordinal_ = 0;
  CUfunc_st* handle_ = nullptr;
  std::string name_;
};

class Module {
 public:
  // Loads the image (a cubin, as NVRTC or nvcc writes it) to the device. Throws Error(unavailable) if it is
  // for another architecture.
  Module(int ordinal, void const* image);
  // By the name that stands in the image (mangled, where C++ mangles). Its code is brought to the device now,
  // not by its first launch. Throws Error(system) if there is none.
  Function function(std::string const& name) const;

 private:
  int ordinal_;
  std::shared_ptr<void> module_;
};

}  // namespace cosmati::cuda
