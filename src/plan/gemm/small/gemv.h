// Products with few rows or columns by the main loop gemv, which streams the other operand.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {

// The reason why gemv does not support the problem; empty if it does.
std::string gemv_violation(CanonicalGemm const& form);

// Whether m and n are exchanged, so that D has few rows.
bool gemv_side(GemmProblem const& problem);

// How gemv reads operand A or B: contiguous runs that are not aligned are shifted, if they are long enough.
OperandAccess gemv_access(MatrixForm const& operand, bool is_a, Index outer);
bool gemv_shifts(MatrixForm const& operand, bool is_a, Index outer);

// The policies for operands of the form, named after the warps that share a tile along k.
std::vector<NamedPolicy> gemv_policies(CanonicalGemm const& form);

std::string gemv_policy_violation(GemmPolicy const& policy, DataType sum);

// The number of sums in a workspace slot; each part of a tile's k has a slot.
Index gemv_slot_sums(GemmPolicy const& policy);

double predict_gemv(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu, int resident);

}  // namespace cosmati::plan
