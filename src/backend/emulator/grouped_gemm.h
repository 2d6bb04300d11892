// Grouped products in the emulator: a handful of types and layouts, by the kernels that a GPU has.
#pragma once
#include <memory>
#include <string>

#include "cosmati/ops/grouped_gemm.h"
#include "src/plan/gemm/group.h"

namespace cosmati::emulator {

// Empty, or which types and directions there is a kernel for.
std::string group_violation(GemmRecipe const& recipe, plan::GroupForm const& group);

// Bytes of the records, which lie in the workspace.
std::size_t group_workspace(GemmRecipe const& recipe, plan::GroupForm const& group);

std::unique_ptr<Kernel<GroupedGemmProblem>> prepare_grouped_gemm(Plan<GroupedGemmProblem> const& plan);

}  // namespace cosmati::emulator
