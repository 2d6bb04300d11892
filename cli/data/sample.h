// Verifying a large problem on some of its elements.
#pragma once
#include <vector>

#include "cli/verify/verification.h"

namespace cosmati::cli {

// Some rows and columns of a matrix product, first and last among them, of all that cross about `elements`
// elements: computed by the reference from the same inputs, and compared as verify compares. `tensors` are in
// the order of the task's slots, outputs as they were computed. Notes::axes says which index each dimension
// is.
Verdict verify_sample(Task& task, std::vector<Tensor> const& tensors, Index elements, nets::Random& random);

}  // namespace cosmati::cli
