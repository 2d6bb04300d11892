// Memory placement (gaps and misalignment) of the arrays of bench, compile, explain and tune.
#pragma once
#include "cli/operations/task.h"
#include "cli/options/options.h"

namespace cosmati::cli {

struct Placement {
  long long gap = 0;           // additional elements per leading dimension, and between matrices
  long long misalignment = 0;  // bytes from a multiple of 64, rounded up to a multiple of the elements' size
};

void add_placement_options(Options& options, Placement& placement);

// The byte offset of an array from a multiple of 64.
Index offset_of(TensorDescription const& description, Index misalignment);

// Reduces the alignment promised in the task's descriptions accordingly.
void promise_alignment(Task& task, Index misalignment);

// Applies both to a task and adds them to its label. Throws Error(bad_request).
void place(Task& task, Placement const& placement);

}  // namespace cosmati::cli
