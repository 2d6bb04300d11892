// COSMATI_RECORD=FILE: records the workload of this process for `cosmati replay` (docs/replay.md). One line
// per problem that was prepared and run, with the number of runs, written when the process exits; the backend
// reference is excluded.
#pragma once
#include <atomic>
#include <string>

#include "cosmati/ops/operation.h"

namespace cosmati::plan {

// Marks the preparation of a kernel. Kernels that are part of another kernel are not recorded.
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

// The run counter of all kernels with this line; valid until the process exits.
std::atomic<long long>& runs_of(std::string const& call);

}  // namespace cosmati::plan
