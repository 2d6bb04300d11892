// Measures the candidates for a problem on this machine's device, whereas make_plan predicts.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/operation.h"
#include "cosmati/ops/tuning.h"

namespace cosmati {

struct FindOptions {
  // Restricts the candidates by name, workspace and so on, as for make_plan.
  PlanOptions plan = {};
  // Measuring time per candidate, after one warm-up run. A candidate whose warm-up took four times as long as
  // the best so far is not run again.
  double seconds = 0.1;
  // Also measures the naive loops, which are otherwise measured only if no other candidate accepts the
  // problem.
  bool reference = false;
};

// A measured candidate: its plan, and the time of one run in seconds: the minimum on a host, where other
// programs interfere, the median on a GPU.
template <class Problem>
struct Found {
  Prepared<Problem> prepared;
  double seconds = 0;
};

// Returns each candidate that accepts the problem, fastest first; at least one. Data are random; all tensors
// and one workspace are allocated on the device. Waits for the default stream. The emulator's times do not
// predict those of a GPU. Throws Error as make_plan and prepare do, and if memory is insufficient.
template <class Problem>
std::vector<Found<Problem>> find(Problem const& problem, Device const& device,
                                 FindOptions const& options = {});

// Returns the line of a tuning file that makes plans for the problem's class use the fastest of `found`;
// `options` are those of the measurement, without kernel and policy. The caller sets driver, version and
// time. Available for GemmProblem and ConvolutionProblem; throws Error(bad_request) for problems outside
// every class: arrays of pointers and empty products.
template <class Problem>
TuningLine tuning_line(std::vector<Found<Problem>> const& found, PlanOptions const& options);

}  // namespace cosmati
