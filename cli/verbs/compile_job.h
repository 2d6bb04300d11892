// The body of `cosmati compile`.
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

struct CompileRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  std::string suite, shapes;    // a name, a file
  std::string lines;            // of them: "1,4"; empty: all
  std::string architecture;     // "sm_90a"; empty: that of the described GPU
  std::string out;              // file for the machine code of one kernel
  long long count = not_given;  // random problems
  bool each_kernel = false;     // not only the one that the plan chooses
  Placement placement;
  Common common;

  CompileRequest copy() const {
    return {subject->clone(), size,      suite, shapes, lines, architecture, out, count,
            each_kernel,      placement, common};
  }
};

// `with_options` gives a request with the options of a suite's problem over those of the command line.
using WithCompileOptions = std::function<CompileRequest(CompileRequest const&, ProblemOptions const&)>;

// Plans, composes and compiles in parallel, without a GPU; prints a row for each problem.
void compile_job(CompileRequest const& request, WithCompileOptions const& with_options);

}  // namespace cosmati::cli
