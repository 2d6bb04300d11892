// Tunes one problem on a GPU: alternatives to the plan's choice are compiled, timed, verified and compared.
#pragma once
#include <string>
#include <vector>

#include "cli/bench/contest.h"

namespace cosmati::cli {

struct TuningRules {
  double budget_seconds = 20;  // for one problem: what is not measured by then is not measured
  long long slices = 11;       // of each of the last
  double slice_seconds = 0.03;
  bool hot = false;
  Index misalignment = 0;
  int threads = 0;  // that compile; 0: one for each core
};

struct TuningResult {
  TuningContender chosen;  // its line lacks driver, version and time
  TuningContender planned;
  Interval ratio;                     // the plan's time / the chosen's: 1 where they are one
  int measured = 0;                   // choices
  double spent_seconds = 0;           // of the budget
  bool as_graphs = true;              // calls were timed as CUDA graphs of them, as bench times them
  bool has_kept = false;              // the line that the file had stays, measured again
  std::vector<std::string> failures;  // choices that gave wrong results; empty: none
};

// Times the choices roughly, then those beside the best, as long as the budget lasts; then the best few, the
// plan's own and `known` (which may be null) in turns. The result is the fastest correct choice; if the 95 %
// interval of its ratio to `known`, or else to the plan's own, contains 1, it is that one. Throws
// Error(wrong_result) if none is correct.
TuningResult tune_on_gpu(Task& task, TuningChoices const& choices, TuningLine const* known,
                         Device const& device, PlanOptions const& options, TuningRules const& rules,
                         unsigned long long seed);

}  // namespace cosmati::cli
