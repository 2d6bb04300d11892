// The GEMM kernels of the backends cuda and emulator as candidates, and the choice among their policies.
#pragma once
#include <vector>

#include "cosmati/ops/gemm.h"

namespace cosmati::plan {

std::vector<Candidate<GemmProblem>> gemm_candidates(Backend backend);

}  // namespace cosmati::plan
