// Runs the programs of primitives on a GPU: their kernels are compiled or found in the cache, and launched
// one after another.
#pragma once
#include <vector>

#include "src/backend/cuda/driver/module.h"
#include "src/plan/primitive/program.h"
#include "src/program/program.h"

namespace cosmati::cuda {

// A program whose kernels are compiled and loaded. Immutable; enqueue() is thread-safe.
class PrimitiveLaunches {
 public:
  PrimitiveLaunches(plan::PrimitiveProgram program, Gpu const& gpu);
  void enqueue(plan::PrimitiveRun const& run, Stream stream) const;

 private:
  plan::PrimitiveProgram program_;
  int ordinal_;
  // One of each per pass.
  std::vector<program::KernelSpec> kernels_;
  std::vector<Function> functions_;
};

}  // namespace cosmati::cuda
