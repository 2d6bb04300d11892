// Packing of convolution operands that TMA cannot read, or reads with much padding, into the workspace: the
// resulting convolution, and the packing passes.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cosmati/conv/packing_arguments.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::plan {

inline bool is_filter(ConvolutionProblem const& problem) {
  return problem.direction == ConvolutionDirection::filter;
}

// The convolution of the packed tensors. If rows of the image are joined (rows > 0), windows are one column
// wide and overlap in memory. The results are the problem's own, except for a filter gradient with
// packs_result(), whose channels, or runs of them, are padded to full TMA steps.
ConvolutionProblem packed_problem(ConvolutionProblem const& problem, PackRecipe const& recipe);

// Ways to join taps of a row, and rows. Empty if channels fill TMA rows, or if dilation leaves gaps between
// taps.
std::vector<PackRecipe> packings_of_rows(ConvolutionProblem const& problem);

// The common stride of three dimensions, the last one innermost; empty if there is none.
std::optional<Index> joined_stride(std::array<Index, 3> const& extent, Index const (&stride)[3]);

// dy of a filter gradient as a matrix of filters by pixels, as it is and transposed; not present if no single
// stride covers all pixels.
struct GradientMatrix {
  MatrixForm from;
  Index filters = 0, pixels = 0;
  RepackRecipe transposed(PackRecipe const& recipe = {}) const;  // `recipe` contains its place
};
GradientMatrix gradient_matrix(ConvolutionProblem const& problem);

// Places the packed tensors in the workspace after the product's `own` bytes.
void place_in_workspace(PackRecipe& recipe, ConvolutionProblem const& problem, std::size_t own);

// The reason why the pass cannot be launched; empty if it can.
std::string packing_violation(ConvolutionProblem const& problem, PackRecipe const& recipe);
double packing_seconds(ConvolutionProblem const& problem, PackRecipe const& recipe, Gpu const& gpu);
std::string packing_text(ConvolutionProblem const& problem, PackRecipe const& recipe, Gpu const& gpu);

struct PackLaunch {
  PackParameters parameters;           // without pointers
  int blocks = 0, blocks_of_runs = 0;  // along x and y
  int element_bytes = 0;
  bool is_image = false;  // otherwise the filter, or dy of a filter gradient
  std::size_t to = 0;     // offset in the workspace
};
std::vector<PackLaunch> pack_launches(ConvolutionProblem const& problem, PackRecipe const& recipe);
program::KernelSpec pack_kernel(int element_bytes);

bool packs_result(ConvolutionProblem const& problem, PackRecipe const& recipe);
// dw as a batch of matrices, filters by channels, one for each tap.
struct TapMatrices {
  MatrixForm of_tap;
  Index filters = 0, channels = 0, taps = 0;
};
TapMatrices tap_matrices(ConvolutionProblem const& problem);
// Whether TMA can store a packed result to dw in boxes of `columns`.
bool stores_by_taps(ConvolutionProblem const& problem, PackRecipe const& recipe, int columns);
// Whether another pass unpacks it.
bool unpacks_result(ConvolutionProblem const& problem, PackRecipe const& recipe);
struct UnpackLaunch {
  UnpackParameters parameters;  // without pointers
  int blocks = 0;
  std::size_t from = 0;  // offset in the workspace
};
UnpackLaunch unpack_launch(ConvolutionProblem const& problem, PackRecipe const& recipe);
program::KernelSpec unpack_kernel(int element_bytes);

}  // namespace cosmati::plan
