// The passes that pack operands before a product whose windows TMA unrolls.
#pragma once
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/backend/cuda/driver/module.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

// The kernels that the plan's passes need; none if nothing is packed.
std::vector<jit::Source> packing_sources(Plan<ConvolutionProblem> const& plan);

class PackPasses {
 public:
  // Compiles or loads the kernels.
  explicit PackPasses(Plan<ConvolutionProblem> const& plan);

  // Enqueues the passes; the arguments with which the product goes on.
  ConvolutionProblem::Arguments enqueue(ConvolutionProblem::Arguments arguments, std::byte* workspace,
                                        Stream stream) const;
  // Behind the product, with the arguments that enqueue() had.
  void finish(ConvolutionProblem::Arguments const& given, std::byte* workspace, Stream stream) const;

 private:
  ConvolutionProblem problem_;
  PackRecipe recipe_;
  Function pack_, unpack_;
};

}  // namespace cosmati::cuda
