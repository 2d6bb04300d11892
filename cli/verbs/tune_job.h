// The body of `cosmati tune`.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "cli/operations/subject.h"
#include "cli/options/options.h"
#include "cli/options/placement.h"
#include "cli/options/sizes.h"
#include "cli/options/suites.h"
#include "cli/verbs/gpu_tuning.h"

namespace cosmati::cli {

struct TuneRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  std::string suite, shapes;    // suite name, suite file
  std::string out, fail_above;  // fail_above: RATIO; empty: no limit
  double budget_seconds = TuningRules().budget_seconds;
  bool hot = false;
  Placement placement;
  Common common;

  TuneRequest copy() const;
};

// `with_options` returns a request with the options of a suite's problem merged over those of the command
// line.
using WithTuneOptions = std::function<TuneRequest(TuneRequest const&, ProblemOptions const&)>;

// Prints the regret of the plans, and throws Error(wrong_result) if one is above --fail-above.
// Appends a line to the file after each measured class of problems. Throws Error(wrong_result) at the end if
// a kernel gave a wrong result.
void tune_job(TuneRequest const& request, WithTuneOptions const& with_options);

}  // namespace cosmati::cli
