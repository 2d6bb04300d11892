// One problem measured: our kernel and its peers in turns.
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
  bool hot = false;  // the same operands at each call, instead of sets in turn that pass twice the L2 caches
  Index misalignment = 0;     // Placement::misalignment
  bool single_calls = false;  // on a GPU: no CUDA graphs of calls
  double most_verified =
      2e8;  // operations: whole results of larger problems are not compared with a reference
};

struct Times {
  double median = 0, p5 = 0, p95 = 0;  // of calls; on a GPU of the means over a graph of them
  double best_slice = 0;               // the median of the slices' minima
  double typical = 0;  // what rates are computed of: on the CPU best_slice, on a GPU the median of the
                       // slices' medians
  long long samples = 0;
};

struct PeerResult {
  std::string name, version;
  double seconds = 0;        // Times::typical
  Interval ratio = {};       // peer's time / ours, over pairs of neighbouring slices: above 1 we are faster
  std::string refusal = {};  // of a library that does not compute this problem; nothing else is known then
  // Of a library with heuristics: how many algorithms they offered, how many of them ran in the time that
  // there is for all, which of them was the fastest, and the first.
  int algorithms = 0, tried = 0, chosen = 0;
  double first_seconds = 0;
  Interval first_ratio = {};
  long long workspace_bytes = 0;
  PeerAlgorithm algorithm = {};  // the fastest
  std::vector<PeerTrial> trials =
      {};                   // all that there were, those that take part in the order of the library
  double host_seconds = 0;  // of the caller's thread, to enqueue one call; 0: not known
  std::optional<Verdict> sample = {};  // whether it computed what we did
};

// What is known of a run on a GPU alone.
struct GpuReadings {
  double clock_share = 1;  // of the clock that the device runs at when it has little to do
  bool throttled = false;
  // Calls were timed as CUDA graphs of so many of ours each; 0: as single calls, all contenders alike.
  long long calls_in_graph = 0;
  std::string capture_failure = {};  // whose call could not be captured, and why; empty: nobody's
};

struct ContestResult {
  Choice choice;
  double prepare_seconds = 0, first_call_seconds = 0;
  long long buffers = 1, bytes = 0;  // sets of operands; bytes of one set
  bool settled = true;               // the clock, before the measurement
  bool steady = true;                // the second half is as fast as the first, to 10%
  Times ours;
  std::vector<PeerResult> peers;
  // Of the caller's thread, for one call without what the kernel does: on a GPU to enqueue it, on the host to
  // check and pack its arguments.
  std::optional<double> host_seconds;
  std::optional<GpuReadings> gpu;
  std::optional<Verdict> sample;  // of the elements that were verified; nothing: none were
};

ContestResult hold_contest(Task& task, Device const& device, PlanOptions const& options,
                           ContestRules const& rules, std::vector<PeerProblem> peers,
                           unsigned long long seed);

}  // namespace cosmati::cli
