// Lines of COSMATI_RECORD (src/plan/call_record.h) as tasks.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/operations/task.h"

namespace cosmati::cli {

struct RecordedCall {
  std::size_t line = 0;  // line number in the file, from 1
  std::string subject;   // "gemm"
  long long runs = 0;
  bool batch_invariant = false;
  std::unique_ptr<Task> task;  // null if verify and bench do not support the call; `why` is the reason
  std::string reason = {};
};

// Scalars of epilogues are arguments of a run and not recorded; they are set to 1.25, 1.75, ... Throws
// Error(bad_file) naming the line and the key or value.
std::vector<RecordedCall> read_recorded_calls(std::string const& path);

}  // namespace cosmati::cli
