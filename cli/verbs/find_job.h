// The body of `cosmati find`.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "cli/operations/subject.h"
#include "cli/options/options.h"
#include "cli/options/placement.h"
#include "cli/options/sizes.h"
#include "cli/options/suites.h"

namespace cosmati::cli {

struct FindRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  std::string suite, shapes;  // suite name, suite file
  std::string out;            // tuning file; empty: none
  std::string fail_above;     // RATIO; empty: no limit
  double seconds = FindOptions().seconds;
  bool naive = false;
  Placement placement;
  Common common;

  FindRequest copy() const {
    return {subject->clone(), size, suite, shapes, out, fail_above, seconds, naive, placement, common};
  }
};

// `with_options` returns a request with the options of a suite's problem merged over those of the command
// line.
using WithFindOptions = std::function<FindRequest(FindRequest const&, ProblemOptions const&)>;

// Prints the regret of the plans, and throws Error(wrong_result) if one is above --fail-above.
// Appends a line to the file after each measured problem.
void find_job(FindRequest const& request, WithFindOptions const& with_options);

}  // namespace cosmati::cli
