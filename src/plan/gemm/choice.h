// The GEMM kernels of the backends cuda and emulator as candidates, and the choice among their policies.
#pragma once
#include <vector>

#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/group.h"

namespace cosmati::plan {

std::vector<Candidate<GemmProblem>> gemm_candidates(Backend backend);

// Returns the offer of one kernel family for a non-empty group: its best policy, counting the waves of all
// groups' tiles together.
Offer<GemmProblem> group_offer(MainLoop main_loop, GroupedGemmProblem const& problem, GroupForm const& group,
                               Device const& device, PlanOptions const& options);

}  // namespace cosmati::plan
