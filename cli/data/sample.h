// Verifies a large problem on a sample of its elements.
#pragma once
#include <vector>

#include "cli/verify/verification.h"

namespace cosmati::cli {

// Verifies about `elements` elements of a matrix product: the intersections of some rows and columns,
// including the first and the last, computed by the reference from the same inputs and compared as in verify.
// `tensors` are in the order of the task's slots, outputs as the kernel computed them. Notes::axes maps each
// dimension to its index.
Verdict verify_sample(Task& task, std::vector<Tensor> const& tensors, Index elements, nets::Random& random);

}  // namespace cosmati::cli
