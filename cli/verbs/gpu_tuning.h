// Tunes one problem on a GPU: alternatives to the plan's choice are compiled, timed, verified and compared.
#pragma once
#include <string>
#include <vector>

#include "cli/bench/interleaved.h"

namespace cosmati::cli {

struct TuningRules {
  double budget_seconds = 20;   // per problem; choices not measured by then are skipped
  long long slices = 11;        // per finalist
  double slice_seconds = 0.03;  // at most; less if the rest of the budget is shorter
  bool hot = false;
  Index misalignment = 0;
  int threads = 0;  // number of compile threads; 0: one per core
};

struct TuningResult {
  TuningCandidate chosen;  // its line has no driver, version or time yet
  TuningCandidate planned;
  Interval ratio;                         // plan's time / chosen time; 1 if they are the same choice
  std::vector<TuningCandidate> measured;  // all choices, the fastest first; line.seconds: rough times
  double spent_seconds = 0;               // time used from the budget
  bool as_graphs = true;                  // timed as CUDA graphs, as bench does
  bool has_kept = false;                  // the line of the file was measured again and is kept
  std::vector<std::string> failures;      // choices that gave wrong results
};

// Times the choices roughly, then the neighbors of the best ones as long as the budget lasts; then the best
// few, the plan's own and `known` (may be null) interleaved. Returns the fastest correct choice, but keeps
// `known`, or else the plan's own, if the 95% interval of the ratio to it contains 1. Throws
// Error(wrong_result) if no choice is correct.
TuningResult tune_on_gpu(Task& task, TuningChoices const& choices, TuningLine const* known,
                         Device const& device, PlanOptions const& options, TuningRules const& rules,
                         unsigned long long seed);

}  // namespace cosmati::cli
