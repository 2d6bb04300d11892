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

struct ContestRules {
  long long slices = 15;
  double slice_seconds = 0.2;
  bool hot = false;  // reuse the same operands, instead of rotating over sets larger than twice the L2 cache
  Index misalignment = 0;      // Placement::misalignment
  bool single_calls = false;   // on a GPU: no CUDA graphs of calls
  double most_verified = 2e8;  // operations: complete results of larger problems are not verified
};

struct Times {
  double median = 0, p5 = 0, p95 = 0;  // of calls; on a GPU of the means over a graph of them
  double best_slice = 0;               // the median of the slices' minima
  double typical = 0;                  // basis of rates: on the CPU best_slice, on a GPU the median of the
                                       // slices' medians
  long long samples = 0;
};

struct PeerResult {
  std::string name, version;
  double seconds = 0;        // Times::typical
  Interval ratio = {};       // peer's time / ours, over pairs of neighboring slices: above 1 we are faster
  std::string refusal = {};  // why the library does not support this problem; the other fields are then unset
  // For libraries with heuristics: the number of algorithms offered, the number that ran within the time
  // limit, the index of the fastest, and that of the first.
  int algorithms = 0, tried = 0, chosen = 0;
  double first_seconds = 0;
  Interval first_ratio = {};
  long long workspace_bytes = 0;
  PeerAlgorithm algorithm = {};        // the fastest
  std::vector<PeerTrial> trials = {};  // all algorithms, the contenders in the library's order
  double host_seconds = 0;             // of the caller's thread, to enqueue one call; 0: not known
  std::optional<Verdict> sample = {};  // comparison of its result with ours
};

// Readings available only on GPUs.
struct GpuReadings {
  double clock_share = 1;  // relative to the clock of the nearly idle device
  bool throttled = false;
  // Number of our calls per CUDA graph; 0 if all contenders were timed by single calls.
  long long calls_in_graph = 0;
  std::string capture_failure = {};  // which call could not be captured, and why; empty if none
};

struct ContestResult {
  Choice choice;
  double prepare_seconds = 0, first_call_seconds = 0;
  long long buffers = 1, bytes = 0;  // sets of operands; bytes of one set
  bool settled = true;               // the clock, before the measurement
  bool steady = true;                // the second half is as fast as the first, to 10%
  Times ours;
  std::vector<PeerResult> peers;
  // Time of one call on the caller's thread without the kernel: to enqueue it on a GPU, to check and pack its
  // arguments on the host.
  std::optional<double> host_seconds;
  std::optional<GpuReadings> gpu;
  std::optional<Verdict> sample;  // of the elements that were verified; nothing: none were
};

ContestResult hold_contest(Task& task, Device const& device, PlanOptions const& options,
                           ContestRules const& rules, std::vector<PeerProblem> peers,
                           unsigned long long seed);

}  // namespace cosmati::cli
