// One problem measured: our kernel and its peers in turns.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/peer.h"
#include "cli/task.h"
#include "cli/timing.h"

namespace cosmati::cli {

struct ContestRules {
  long long slices = 15;
  double slice_seconds = 0.2;
  bool hot = false;  // the same operands at each call, instead of sets in turn that pass twice the L2 caches
};

struct Times {
  double median = 0, p5 = 0, p95 = 0;  // of single calls
  double best_slice = 0;               // the median of the slices' minima
  long long samples = 0;
};

struct PeerResult {
  std::string name, version;
  double seconds = 0;  // the median of the slices' minima
  Interval ratio;      // peer's time / ours, over pairs of neighbouring slices: above 1 we are faster
};

struct ContestResult {
  Choice choice;
  double prepare_seconds = 0, first_call_seconds = 0;
  long long buffers = 1, bytes = 0;  // sets of operands; bytes of one set
  bool settled = true;               // the clock, before the measurement
  bool steady = true;                // the second half is as fast as the first, to 10%
  Times ours;
  std::vector<PeerResult> peers;
};

ContestResult hold_contest(Task& task, Device const& device, PlanOptions const& options,
                           ContestRules const& rules, std::vector<PeerProblem> peers,
                           unsigned long long seed);

}  // namespace cosmati::cli
