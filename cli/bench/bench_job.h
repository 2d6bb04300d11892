// The body of `cosmati bench`.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/operations/subject.h"
#include "cli/options/options.h"
#include "cli/options/placement.h"
#include "cli/options/sizes.h"
#include "cli/options/suites.h"

namespace cosmati::cli {

struct BenchRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  std::string suite, shapes;  // a name, a file
  std::string lines;          // line numbers, "1,4"; empty: all
  std::string peers;          // "onednn,openblas"
  std::string python;         // of the peer torch; empty: COSMATI_PYTHON, else python3
  std::string peer_log;       // a file: every algorithm of a peer on a GPU
  std::string json_file;
  std::string fail_below;  // empty: no limit
  long long slices = 15;   // of each contender
  double slice_seconds = 0.2;
  bool hot = false, single_calls = false;
  bool digest = false;         // nothing is timed
  double most_verified = 2e8;  // floating-point operations: the reference needs about a second for them
  Placement placement;
  Common common;
  std::optional<Suite> workload = {};  // recorded problems, which `with_options` identifies by number

  BenchRequest copy() const;
};

// `with_options` merges the options of a suite's problem into the command line's.
using WithOptions = std::function<BenchRequest(BenchRequest const&, ProblemOptions const&)>;

// Throws Error(wrong_result) if a result was wrong or a ratio fell below the limit.
void bench_job(BenchRequest const& request, WithOptions const& with_options);

}  // namespace cosmati::cli
