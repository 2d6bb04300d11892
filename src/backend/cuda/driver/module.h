// Machine code on a device: modules from the bytes of a cubin, their kernels, and launches.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cuda {

struct Blocks {
  unsigned x = 1, y = 1, z = 1;
};

// When a kernel may start: after all previously enqueued work, or, early, while the previous kernel still
// runs; an early kernel waits for it before it accesses memory. together: in order, with all blocks resident
// at the same time (a cooperative launch); otherwise the launch fails.
enum class Start { in_order, early, together };

// A kernel. Cheap to copy; keeps its module loaded. Launching is thread-safe.
class Function {
 public:
  // Permits launches with up to `bytes` of dynamic shared memory; throws Error(bad_request) with the device's
  // limit if that is exceeded.
  void allow_shared_bytes(int bytes);
  int registers() const { return attribute(FunctionAttribute::registers); }
  int local_bytes() const { return attribute(FunctionAttribute::local_bytes); }  // per thread: spills, arrays
  int static_shared_bytes() const { return attribute(FunctionAttribute::static_shared_bytes); }
  int max_threads() const { return attribute(FunctionAttribute::threads_per_block); }
  int blocks_per_multiprocessor(int threads, int shared_bytes) const;
  // The number of clusters of `blocks` blocks that the device can run concurrently.
  int clusters_at_once(int blocks, int threads, int shared_bytes) const;
  std::string const& name() const { return name_; }

  // Enqueues the kernel with the `size` bytes at `params`, a type of that alignment, as its only parameter;
  // they are copied before this returns. Allocates nothing. An empty grid is not launched.
  void launch(Blocks grid, unsigned threads, unsigned shared_bytes, void const* params, std::size_t size,
              std::size_t alignment, Stream stream, Start start = Start::in_order) const;
  template <class Params>
  void launch(Blocks grid, unsigned threads, unsigned shared_bytes, Params const& params, Stream stream,
              Start start = Start::in_order) const {
    launch(grid, threads, shared_bytes, &params, sizeof(Params), alignof(Params), stream, start);
  }

 private:
  friend class Module;
  friend class FunctionReference;
  int attribute(FunctionAttribute which) const;

  std::shared_ptr<void> module_;  // keeps it loaded
  int ordinal_ = 0;
  CUfunc_st* handle_ = nullptr;
  std::string name_;
};

// A function that does not keep its module loaded.
class FunctionReference {
 public:
  explicit FunctionReference(Function const& function) : module_(function.module_), function_(function) {
    function_.module_.reset();
  }
  bool expired() const { return module_.expired(); }
  // Empty if the module has been unloaded.
  std::optional<Function> get() const {
    std::optional<Function> function = function_;
    function->module_ = module_.lock();
    return function->module_ ? function : std::nullopt;
  }

 private:
  std::weak_ptr<void> module_;
  Function function_;
};

class Module {
 public:
  // Loads the image (a cubin, as written by NVRTC or nvcc) to the device. Throws Error(unavailable) if it is
  // for another architecture.
  Module(int ordinal, void const* image);
  // The same, but empty if the driver does not support the image: it is for another architecture, damaged, or
  // by a newer compiler.
  static std::optional<Module> if_supported(int ordinal, void const* image);
  // Finds a kernel by its name in the image (mangled for C++). Its code is loaded to the device now, not by
  // its first launch. Throws Error(system) if there is none.
  Function function(std::string const& name) const;

 private:
  Module(int ordinal, CUmod_st* module);

  int ordinal_;
  std::shared_ptr<void> module_;
};

}  // namespace cosmati::cuda
