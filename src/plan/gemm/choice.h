// The GEMM kernels of the backends cuda and emulator as candidates, and the choice among their policies.
#pragma once
#include <vector>

#include "cosmati/ops/gemm.h"

namespace cosmati::plan {

std::vector<Candidate<GemmProblem>> gemm_candidates(Backend backend);

// Text of the expression is code: many operations, or one that is long, stand in a rolled loop.
EpilogueSchedule schedule_of(epilogue::Expression const& expression);

}  // namespace cosmati::plan
