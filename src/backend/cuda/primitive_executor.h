// The kernels of primitives on a GPU: composed as text, compiled or found in the cache, launched one after
// another.
#pragma once
#include <vector>

#include "src/backend/cuda/driver/module.h"
#include "src/jit/compile.h"
#include "src/plan/primitive/program.h"

namespace cosmati::cuda {

// Returns the source of each pass for the run-time compiler; pure.
jit::Source primitive_source(plan::PrimitivePass const& pass, Gpu const& gpu);

// A program whose kernels are compiled and loaded. Immutable; enqueue() is thread-safe.
class PrimitiveLaunches {
 public:
  PrimitiveLaunches(plan::PrimitiveProgram program, Gpu const& gpu);
  void enqueue(plan::PrimitiveRun const& run, Stream stream) const;

 private:
  plan::PrimitiveProgram program_;
  int ordinal_;
  std::vector<Function> functions_;  // one per pass
};

}  // namespace cosmati::cuda
