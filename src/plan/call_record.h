// COSMATI_RECORD=FILE: what this process computed, for `cosmati replay` (docs/replay.md). A line for each
// problem that was prepared and run, with the number of runs; written when the process ends;
// not of the backend reference.
#pragma once
#include <atomic>
#include <string>

#include "cosmati/ops/operation.h"

namespace cosmati::plan {

// While a kernel is prepared. Those that it is made of are part of it, and are not recorded.
class Preparation {
 public:
  Preparation() { ++depth(); }
  ~Preparation() { --depth(); }
  Preparation(Preparation const&) = delete;
  Preparation& operator=(Preparation const&) = delete;
  bool is_recorded() const;  // the outermost, in a process that records

 private:
  static int& depth();  // of this thread
};

// The line of a plan's problem, as JSON without the number of runs.
template <class Problem>
std::string recorded_call(Plan<Problem> const& plan);

// The runs of all kernels with this line; valid until the process ends.
std::atomic<long long>& runs_of(std::string const& call);

}  // namespace cosmati::plan
