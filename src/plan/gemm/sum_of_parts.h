// Split-K in parallel: the product whose results are the sums of all parts, and the cost of adding them.
#pragma once
#include <cstddef>
#include <string>

#include "cosmati/gemm/sum_of_parts_arguments.h"
#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

inline bool adds_parts(GemmRecipe const& recipe) {
  return recipe.policy.partition == Partition::split_k_parallel;
}

// Returns the product that the main kernel computes with this partition: `form` or, for split_k_parallel, one
// without an epilogue whose result is in the workspace. Its batch remains that of the operands.
CanonicalGemm kernel_form(CanonicalGemm const& form, Partition partition);

// Returns the bytes of the sums of all parts of all matrices.
std::size_t bytes_of_parts(CanonicalGemm const& form, int splits);

// The blocks of the kernel that adds the parts.
SumOfPartsBlock sum_of_parts_block(GemmRecipe const& recipe);

struct SumOfPartsTraits {
  SumOfPartsBlock block;
  DataType sum = DataType::f32;
  std::string epilogue, destination;
  std::string print() const;
};

// Returns the predicted time of that kernel; 0 with other partitions.
double predict_sum_of_parts(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu);

}  // namespace cosmati::plan
