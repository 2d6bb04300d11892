// Benchmarks one problem on a GPU: our kernel interleaved with its peers, in one process.
#pragma once
#include "cli/bench/contest.h"
#include "cli/bench/gpu_gauge.h"

namespace cosmati::cli {

// Like hold_contest, but timed by events and with medians instead of minima, since nothing interrupts a
// kernel. Large results are verified on a sample of their elements.
ContestResult hold_gpu_contest(Task& task, Device const& device, PlanOptions const& options,
                               ContestRules const& rules, std::vector<PeerProblem> const& peers,
                               unsigned long long seed, GpuGauge& gauge);

}  // namespace cosmati::cli
