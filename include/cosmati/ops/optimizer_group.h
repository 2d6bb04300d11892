// One optimizer step for all tensors of a network, called once per training iteration.
#pragma once
#include <span>
#include <vector>

#include "cosmati/ops/optimizer.h"

namespace cosmati {

// Each tensor may have its own hyperparameters (e.g. no weight decay for biases). On a GPU, dense tensors
// with the same types and hyperparameters share launches, up to 32 per launch; the others are launched
// separately.
struct OptimizerGroupProblem {
  std::vector<OptimizerProblem> tensors;

  // The arrays of one tensor; velocity and second only if its problem has them.
  struct Pointers {
    void* parameter = nullptr;
    void const* gradient = nullptr;
    void* velocity = nullptr;
    void* second = nullptr;
  };
  struct Arguments {
    std::span<Pointers const> pointers;  // for each tensor, in the problem's order
    double rate = 0;
    long long step = 1;
  };

  // Kernels check the pointers, since their number is not fixed.
  template <class Self, class Visit>
  static void visit_tensors(Self&, Visit&&) {}
};

void validate(OptimizerGroupProblem const& problem);  // throws Error(bad_request), naming the tensor

}  // namespace cosmati
