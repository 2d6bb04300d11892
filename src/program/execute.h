// Runs programs: declared here, so that plans can prepare theirs, and defined above the backends
// (src/candidates/execute.cpp).
#pragma once
#include <memory>

#include "src/program/program.h"

namespace cosmati::program {

// The program of this plan on the plan's backend: its kernels compiled or found, ready to run. Throws
// Error(unavailable) where the backend cannot run here.
template <class Problem>
std::unique_ptr<Kernel<Problem>> prepare(Plan<Problem> const& plan, Program program);

}  // namespace cosmati::program
