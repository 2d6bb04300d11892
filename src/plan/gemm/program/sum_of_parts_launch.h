// The kernel that adds the parts of a split-K product, and its launches.
#pragma once
#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::plan {

// Appends the kernel and its launches to the program; the parts are at the beginning of the workspace.
void append_sum_of_parts(program::Program& program, Plan<GemmProblem> const& plan, CanonicalGemm const& form);

}  // namespace cosmati::plan
