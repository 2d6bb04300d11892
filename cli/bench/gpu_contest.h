// One problem measured on a GPU: our kernel and its peers in turns, in one process.
#pragma once
#include "cli/bench/contest.h"
#include "cli/bench/gpu_gauge.h"

namespace cosmati::cli {

// As hold_contest; times are by events, and medians in the place of minima, since nothing interrupts a
// kernel. What is too large to be verified whole is verified on a sample of elements.
ContestResult hold_gpu_contest(Task& task, Device const& device, PlanOptions const& options,
                               ContestRules const& rules, std::vector<PeerProblem> const& peers,
                               unsigned long long seed, GpuGauge& gauge);

}  // namespace cosmati::cli
