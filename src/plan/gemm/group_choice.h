// The kernels of the backends cuda and emulator for groups, as candidates.
#pragma once
#include <vector>

#include "cosmati/ops/grouped_gemm.h"

namespace cosmati::plan {

std::vector<Candidate<GroupedGemmProblem>> group_candidates();

}  // namespace cosmati::plan
