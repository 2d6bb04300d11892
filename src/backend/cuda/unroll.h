// The pass that writes the unrolled image before the product of unroll_gemm.
#pragma once
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/backend/cuda/driver/module.h"
#include "src/jit/compile.h"
#include "src/plan/conv/form.h"

namespace cosmati::cuda {

// The kernel that the plan's pass needs; none but for unroll_gemm.
std::vector<jit::Source> unroll_sources(Plan<ConvolutionProblem> const& plan);

class UnrollPass {
 public:
  // Compiles or loads the kernel. Of other algorithms than unroll_gemm nothing happens, here or later.
  explicit UnrollPass(Plan<ConvolutionProblem> const& plan);

  // Enqueues the pass over the image; where the product finds it: `image`, or the matrix in the workspace.
  void const* enqueue(plan::ConvolutionForm const& form, void const* image, std::byte* workspace,
                      Stream stream) const;

 private:
  UnrollRecipe recipe_;
  Function function_;
};

}  // namespace cosmati::cuda
