// A cooperative kernel: its blocks wait for each other, so all of them must be resident.
#pragma once
#include "src/backend/cuda/driver/module.h"
#include "src/program/program.h"

namespace cosmati::cuda {

class CooperativeKernel {
 public:
  // Compiles the kernel, or finds it in the cache.
  CooperativeKernel(program::KernelSpec const& kernel, Gpu const& gpu);
  // The number of blocks that a multiprocessor runs at the same time.
  int resident_blocks() const;
  template <class Parameters>
  void launch(int blocks, Parameters const& parameters, Stream stream) const {
    function_.launch({static_cast<unsigned>(blocks)}, threads_, shared_bytes_, parameters, stream,
                     Start::together);
  }

 private:
  Function function_;
  unsigned threads_, shared_bytes_;
};

}  // namespace cosmati::cuda
