// Measures the candidates for a problem on the device that is here, where make_plan goes by prediction.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/operation.h"
#include "cosmati/ops/tuning.h"

namespace cosmati {

struct FindOptions {
  // Which candidates: of one name, below a limit of workspace, as for make_plan.
  PlanOptions plan = {};
  // For each candidate, after one run that does not count. One that took four times as long as the best so
  // far then is not run again.
  double seconds = 0.1;
  // The naive loops as well; else they are measured only where no other candidate accepts the problem.
  bool reference = false;
};

// A candidate that was measured: its plan, ready to be run, and the seconds of one run: the least on a host,
// whose time other programs take as well, the median on a GPU.
template <class Problem>
struct Found {
  Prepared<Problem> prepared;
  double seconds = 0;
};

// Each candidate that accepts the problem, the fastest first; at least one. Data are random and of the
// library's own: all tensors and one workspace are allocated at a time, on the device. Waits for the default
// stream. The emulator's times say nothing of a GPU. Throws Error as make_plan and prepare do, and where
// memory is short.
template <class Problem>
std::vector<Found<Problem>> find(Problem const& problem, Device const& device,
                                 FindOptions const& options = {});

// The line of a tuning file by which plans of the problem's class take the fastest of `found`; `options` are
// those that it was found with, without a kernel or a policy. Driver, version and time are the caller's. For
// GemmProblem and ConvolutionProblem; throws Error(bad_request) for problems of no class, which are arrays of
// pointers and empty products.
template <class Problem>
TuningLine tuning_line(std::vector<Found<Problem>> const& found, PlanOptions const& options);

}  // namespace cosmati
