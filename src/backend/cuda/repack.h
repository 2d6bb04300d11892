// The passes over operands before a product: their kernels, and their launches.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cosmati/ops/gemm.h"
#include "src/backend/cuda/driver/module.h"
#include "src/jit/compile.h"
#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::cuda {

// The kernels that the plan's passes need: at most two, none if nothing is repacked.
std::vector<jit::Source> repack_sources(Plan<GemmProblem> const& plan);

class RepackPass {
 public:
  // Compiles or loads the kernel that repacks operand (outer, depth). Does nothing if repack.bytes is 0.
  RepackPass(Gpu const& gpu, plan::MatrixForm const& operand, RepackRecipe const& repack, Index outer,
             Index depth, Index batch);

  // Enqueues the copy into the workspace; the operand as the product finds it: data, or the copy.
  void const* enqueue(void const* data, std::byte* workspace, Stream stream) const;

 private:
  plan::MatrixForm operand_;
  RepackRecipe repack_;
  Index outer_, depth_, batch_;
  program::KernelSpec kernel_;
  Function function_;
};

}  // namespace cosmati::cuda
