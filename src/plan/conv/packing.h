// Operands of a convolution that the copy engine cannot read as they lie, or reads with many zeros, written
// to the workspace first: the convolution that is left, and the passes that write them.
#pragma once
#include <string>
#include <vector>

#include "cosmati/conv/packing_arguments.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

// The convolution of the packed tensors. Of an image whose rows are put together (rows > 0) windows are one
// column wide, and overlap in memory. Its results are the problem's own, but for a filter's gradient that
// packs_result(): that has channels, or runs of them, in whole steps of the copy engine.
ConvolutionProblem packed_problem(ConvolutionProblem const& problem, PackRecipe const& recipe);

// Ways to put taps of a row, and rows, together. Empty if channels fill the copy engine's rows, or if steps
// between taps leave gaps.
std::vector<PackRecipe> packings_of_rows(ConvolutionProblem const& problem);

// Gives the packed tensors their places behind `own` bytes of the product's.
void place_in_workspace(PackRecipe& recipe, ConvolutionProblem const& problem, std::size_t own);

// Why the pass cannot be launched; empty: it can.
std::string packing_violation(ConvolutionProblem const& problem, PackRecipe const& recipe);
double packing_seconds(ConvolutionProblem const& problem, PackRecipe const& recipe, Gpu const& gpu);
std::string packing_text(ConvolutionProblem const& problem, PackRecipe const& recipe, Gpu const& gpu);

struct PackLaunch {
  PackParameters parameters;
  int blocks = 0, blocks_of_runs = 0;  // along x and y
  int element_bytes = 0;
};
// In order; afterwards `arguments` name the packed tensors.
std::vector<PackLaunch> pack_launches(ConvolutionProblem const& problem, PackRecipe const& recipe,
                                      ConvolutionProblem::Arguments& arguments, std::byte* workspace);

bool packs_result(ConvolutionProblem const& problem, PackRecipe const& recipe);
// Behind the product, with the arguments as they were given.
struct UnpackLaunch {
  UnpackParameters parameters;
  int blocks = 0, element_bytes = 0;
};
UnpackLaunch unpack_launch(ConvolutionProblem const& problem, PackRecipe const& recipe,
                           ConvolutionProblem::Arguments const& arguments, std::byte* workspace);

}  // namespace cosmati::plan
