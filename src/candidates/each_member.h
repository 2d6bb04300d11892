// Groups that no kernel supports in one launch: one product after another.
#pragma once
#include "cosmati/ops/grouped_gemm.h"

namespace cosmati::plan {

// Plans every member on the same device. On the host, small members run concurrently, each on one thread; the
// others one after another, on all threads.
Candidate<GroupedGemmProblem> each_member_candidate();

}  // namespace cosmati::plan
