// Batches given by pointers, on backends whose kernels support only strides.
#pragma once
#include "cosmati/ops/gemm.h"

namespace cosmati::plan {

// Plans one matrix on the same device and runs it for each matrix of the batch. Only for problems with
// by_pointers.
Candidate<GemmProblem> each_matrix_candidate();

}  // namespace cosmati::plan
