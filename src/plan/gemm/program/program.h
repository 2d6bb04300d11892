// From a plan of a matrix product, or of a group of them, to its program.
#pragma once
#include <memory>

#include "cosmati/ops/grouped_gemm.h"
#include "src/plan/gemm/group.h"
#include "src/program/program.h"

namespace cosmati::plan {

program::Program program_of(Plan<GemmProblem> const& plan);
program::Program program_of(Plan<GroupedGemmProblem> const& plan);

// The plan's program, ready to run on its backend.
std::unique_ptr<Kernel<GemmProblem>> prepare_program(Plan<GemmProblem> const& plan);
std::unique_ptr<Kernel<GroupedGemmProblem>> prepare_program(Plan<GroupedGemmProblem> const& plan);

// The size in bytes of a group's records, which are in the workspace.
std::size_t group_workspace(Backend backend, GemmRecipe const& recipe, GroupForm const& group,
                            GroupedGemmProblem const& problem);

}  // namespace cosmati::plan
