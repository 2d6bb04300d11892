// Benchmarks one problem on a GPU: our kernel interleaved with its peers, in one process.
#pragma once
#include "cli/bench/gpu_peaks.h"
#include "cli/bench/interleaved.h"

namespace cosmati::cli {

// Like run_interleaved, but timed by events and with medians instead of minima, since nothing interrupts a
// kernel. Large results are verified on a sample of their elements.
InterleavedResult run_interleaved_on_gpu(Task& task, Device const& device, PlanOptions const& options,
                                         InterleavedRules const& rules, std::vector<PeerProblem> const& peers,
                                         unsigned long long seed, GpuPeaks& gpu_peaks);

}  // namespace cosmati::cli
