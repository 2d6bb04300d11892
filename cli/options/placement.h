// Placement of the arrays of bench, compile, explain and tune in memory: gaps and misalignment.
#pragma once
#include "cli/operations/task.h"
#include "cli/options/options.h"

namespace cosmati::cli {

struct Placement {
  long long gap = 0;  // elements between columns (leading dimensions are so much larger) and matrices
  long long misalignment = 0;  // bytes from a multiple of 64, rounded up to a multiple of the elements' size
};

void add_placement_options(Options& options, Placement& placement);

// Where an array begins after a multiple of 64.
Index offset_of(TensorDescription const& description, Index misalignment);

// The task's descriptions promise the plan what is left of the alignment.
void promise_alignment(Task& task, Index misalignment);

// Both for a task whose tensors have neither, and its label tells. Throws Error(bad_request).
void place(Task& task, Placement const& placement);

}  // namespace cosmati::cli
