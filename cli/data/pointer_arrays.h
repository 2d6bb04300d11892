// Batches by arrays of pointers, derived from strided batches.
#pragma once
#include <memory>
#include <vector>

#include "cli/operations/task.h"

namespace cosmati::cli {

// A task that takes pointers to whole tensors, and gives `prepared` an array with one pointer for each matrix
// of the first tensors.size() of them, in the device's memory. Arrays are made when a tensor is first met.
std::unique_ptr<PreparedTask> through_pointers(std::unique_ptr<PreparedTask> prepared, Device const& device,
                                               std::vector<TensorDescription> tensors);

// What the matrices of a batch by strides may be promised to be aligned to.
int alignment_of_matrices(TensorDescription const& tensor);

}  // namespace cosmati::cli
