// Grouped products on a GPU: one launch for all members, after one that binds their pointers.
#pragma once
#include <memory>
#include <vector>

#include "cosmati/ops/grouped_gemm.h"
#include "src/jit/compile.h"
#include "src/plan/gemm/group.h"

namespace cosmati::cuda {

// Bytes of the records, which lie in the workspace.
std::size_t group_workspace(GemmRecipe const& recipe, plan::GroupForm const& group,
                            GroupedGemmProblem const& problem);

// The kernel that binds pointers.
jit::Source group_bind_source(Plan<GroupedGemmProblem> const& plan);

std::unique_ptr<Kernel<GroupedGemmProblem>> prepare_grouped_gemm(Plan<GroupedGemmProblem> const& plan);

}  // namespace cosmati::cuda
