// Benchmarks one problem: our kernel interleaved with its peers.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/peers/peer.h"
#include "cli/bench/timing.h"
#include "cli/operations/task.h"
#include "cli/verify/verification.h"

namespace cosmati::cli {

struct InterleavedRules {
  long long slices = 15;
  double slice_seconds = 0.2;
  bool hot = false;  // reuse the same operands instead of rotating over sets larger than twice the L2 cache
  Index misalignment = 0;     // Placement::misalignment
  bool single_calls = false;  // GPU only: time single calls instead of CUDA graphs
  double max_verified = 2e8;  // largest problem that is verified completely, in operations
};

struct Times {
  double median = 0, p5 = 0, p95 = 0;  // times of calls; on a GPU, means over the calls of a graph
  double best_slice = 0;               // median of the slices' minima
  double typical = 0;  // basis of rates: best_slice on the CPU, the median of the slices' medians on a GPU
  long long samples = 0;
};

struct PeerResult {
  std::string name, version;
  double seconds = 0;   // Times::typical
  Interval ratio = {};  // peer's time / our time over pairs of adjacent slices; above 1 our kernel is faster
  std::string refusal = {};  // why the library does not support this problem; the other fields are then unset
  // For libraries with heuristics: how many algorithms were offered, how many ran within the time limit, the
  // index of the fastest, and the seconds of the first.
  int algorithms = 0, tried = 0, chosen = 0;
  double first_seconds = 0;
  Interval first_ratio = {};
  long long workspace_bytes = 0;
  PeerAlgorithm algorithm = {};        // the fastest algorithm
  std::vector<PeerTrial> trials = {};  // all algorithms; those that took part are in the library's order
  double host_seconds = 0;             // host time to enqueue one call; 0: unknown
  std::optional<Verdict> sample = {};  // comparison of the peer's result with ours
};

// Readings available only on GPUs.
struct GpuReadings {
  double clock_share = 1;  // current clock relative to the clock of the nearly idle device
  bool throttled = false;
  // Number of our calls per CUDA graph; 0 if all participants were timed by single calls.
  long long calls_in_graph = 0;
  std::string capture_failure = {};  // which call could not be captured and why; empty if none
};

struct InterleavedResult {
  Choice choice;
  double prepare_seconds = 0, first_call_seconds = 0;
  long long buffers = 1, bytes = 0;  // number of operand sets; bytes of one set
  bool settled = true;               // the clock settled before the measurement
  bool steady = true;  // the second half was as fast as the first: within 3 % on a GPU, 10 % on a CPU
  Times ours;
  std::vector<PeerResult> peers;
  // Host time of one call without the kernel: enqueueing it on a GPU, checking and packing its arguments on
  // the CPU.
  std::optional<double> host_seconds;
  std::optional<GpuReadings> gpu;
  std::optional<Verdict> sample;  // verdict on a sample of the elements; empty if no element was verified
};

InterleavedResult run_interleaved(Task& task, Device const& device, PlanOptions const& options,
                                  InterleavedRules const& rules, std::vector<PeerProblem> peers,
                                  unsigned long long seed);

}  // namespace cosmati::cli
