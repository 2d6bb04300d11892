// The text of a GEMM kernel: our headers, the epilogue as a function, and one name expression.
#pragma once
#include "cosmati/ops/grouped_gemm.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

// What the run-time compiler gets for this plan; pure.
jit::Source gemm_source(Plan<GemmProblem> const& plan);
jit::Source gemm_source(Plan<GroupedGemmProblem> const& plan);

// "sm_90a": from compute capability 9.0 on with the instructions that only this architecture has.
std::string architecture_of(Gpu const& gpu);

}  // namespace cosmati::cuda
