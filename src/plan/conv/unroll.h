// Convolution by explicit im2col: the matrix of the whole mini-batch, or of slices that fit in the workspace,
// is written first.
#pragma once
#include <vector>

#include "cosmati/conv/unroll_arguments.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> unroll_gemm(ConvolutionProblem const& problem, Device const& device,
                                      PlanOptions const& options);

// The products, each with the image unrolled before it.
std::vector<ConvolutionForm> unrolled_forms(ConvolutionProblem const& problem, UnrollRecipe const& recipe);

struct UnrollTraits {
  int element_bytes = 4;
  Along along = Along::k;
  int width = 1;
  bool windowed = true;
  std::string print() const;
};
// The emulator's instances: single elements or, for K-major words, 16 bytes.
UnrollTraits emulated_unrolling(int element_bytes, Along along, int width);
// `image`: the image before unrolling.
program::KernelSpec unrolling_kernel(WindowForm const& image, UnrollRecipe const& recipe, bool emulated);

// The launch that writes the image of `form`, whose data are at `from`, to the workspace.
struct UnrollLaunch {
  UnrollParameters parameters;
  Index blocks;
};
UnrollLaunch unroll_launch(ConvolutionForm const& form, UnrollRecipe const& recipe, void const* from,
                           std::byte* workspace);

}  // namespace cosmati::plan
