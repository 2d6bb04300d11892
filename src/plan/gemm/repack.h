// Repacking of operands that TMA or wgmma does not support: they are first copied to the workspace, with rows
// at multiples of 16 bytes and the required major. The pass over memory pays off if the product takes much
// longer.
#pragma once
#include "cosmati/gemm/repack_arguments.h"
#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::plan {

// Returns how the `batch` matrices of `outer` by `depth` elements are made contiguous along `to`.
RepackRecipe repack_of(MatrixForm const& operand, Index outer, Index depth, Index batch, Along to);

// Returns the operand after the copy.
MatrixForm repacked(MatrixForm const& operand, RepackRecipe const& repack);

struct RepackTraits {
  RepackPolicy policy;
  std::string print() const;
};
std::string row_copy_traits(int element_bytes);
// The emulator has kernels for runs of a word, and for single elements.
program::KernelSpec repacking_kernel(MatrixForm const& operand, RepackRecipe const& repack,
                                     bool emulated = false);
// Returns the kernel's number of blocks along the grid's x; z is the batch.
Index repack_tiles(MatrixForm const& operand, RepackRecipe const& repack, Index outer, Index depth);

// Returns the parameters of the kernel that copies the operand; `data` points to it, or to an array of
// pointers.
RepackParameters repack_parameters(MatrixForm const& operand, RepackRecipe const& repack, Index outer,
                                   Index depth, void const* data, std::byte* workspace);

// Returns the problem that the multiplying kernel computes after repacking.
CanonicalGemm repacked(CanonicalGemm form, GemmRecipe const& recipe);

// Predicted time of the recipe's repacking passes; 0 if it has none.
double predict_repack(GemmRecipe const& recipe, Gpu const& gpu);

}  // namespace cosmati::plan
