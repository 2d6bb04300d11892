// Batches given by arrays of pointers, derived from strided batches.
#pragma once
#include <memory>
#include <vector>

#include "cli/operations/task.h"

namespace cosmati::cli {

// Returns a task that takes pointers to complete tensors and passes `prepared`, for each of the first
// tensors.size() of them, a device array with one pointer per matrix. These arrays are created when a tensor
// is first seen.
std::unique_ptr<PreparedTask> through_pointers(std::unique_ptr<PreparedTask> prepared, Device const& device,
                                               std::vector<TensorDescription> tensors);

// The largest alignment that holds for all matrices of a strided batch.
int alignment_of_matrices(TensorDescription const& tensor);

}  // namespace cosmati::cli
