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
  std::string suite, shapes;  // suite name, suite file
  std::string lines;          // lines of the suite, e.g. "1,4"; empty: all
  std::string peers;          // names separated by commas, e.g. "onednn,openblas"
  std::string python;         // Python of the peer torch; empty: COSMATI_PYTHON
  std::string peer_log;       // file that receives every algorithm of a GPU peer
  bool same_layout = false;   // cudnn computes only in the problem's layout
  std::string json_file;
  std::string fail_below;  // empty: no limit
  long long slices = 15;   // time slices of each participant
  double slice_seconds = 0.2;
  bool hot = false, single_calls = false;
  bool digest = false;        // print digests only; time nothing
  double max_verified = 2e8;  // largest problem that is verified completely, in floating-point operations
                              // (about a second of the reference)
  Placement placement;
  Common common;
  std::optional<Suite> workload = {};  // recorded problems; with_options selects one by its number

  BenchRequest copy() const;
};

// `with_options` merges the options of a suite's problem into the command line's.
using WithOptions = std::function<BenchRequest(BenchRequest const&, ProblemOptions const&)>;

// Throws Error(wrong_result) if a result is wrong or a ratio is below `fail_below`.
void bench_job(BenchRequest const& request, WithOptions const& with_options);

}  // namespace cosmati::cli
