// The body of `cosmati compile`.
#pragma once
#include <memory>
#include <string>

#include "cli/operations/subject.h"
#include "cli/options/options.h"
#include "cli/options/placement.h"
#include "cli/options/sizes.h"
#include "cli/options/suites.h"

namespace cosmati::cli {

struct CompileRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  std::string suite, shapes;    // suite name, suite file
  std::string lines;            // lines of the suite, "1,4"; empty: all
  std::string architecture;     // "sm_90a"; empty: that of the described GPU
  std::string out;              // file for the machine code of a single kernel
  long long count = not_given;  // number of random problems
  bool each_kernel = false;     // compile every kernel that accepts the problem, not only the planned one
  Placement placement;
  Common common;

  CompileRequest copy() const {
    return {subject->clone(), size,      suite, shapes, lines, architecture, out, count,
            each_kernel,      placement, common};
  }
};

// The request with the options of a suite's problem merged over those of the command line.
CompileRequest with_options(CompileRequest const& request, ProblemOptions const& problem);

struct CompileTarget {
  Device device;             // to plan for
  std::string architecture;  // to compile for
};
// The GPU of --device-description, or one of the architecture of --arch (may be empty).
CompileTarget compile_target(Common common, std::string const& architecture);

// Plans, composes and compiles in parallel, without a GPU; prints a row for each problem.
void compile_job(CompileRequest const& request);

}  // namespace cosmati::cli
