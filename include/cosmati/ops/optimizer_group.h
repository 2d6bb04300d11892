// One step of an optimiser for all tensors of a network: what a training loop calls once an iteration.
#pragma once
#include <span>
#include <vector>

#include "cosmati/ops/optimizer.h"

namespace cosmati {

// Each tensor may have numbers of its own (no weight decay for biases). On a GPU, tensors that lie without
// gaps and agree in types and numbers share launches, up to 32 of them each; the others have their own.
struct OptimizerGroupProblem {
  std::vector<OptimizerProblem> tensors;

  // Of one tensor; velocity and second where its problem has them.
  struct Pointers {
    void* parameter = nullptr;
    void const* gradient = nullptr;
    void* velocity = nullptr;
    void* second = nullptr;
  };
  struct Arguments {
    std::span<Pointers const> pointers;  // of each tensor, in the problem's order
    double rate = 0;
    long long step = 1;
  };

  // The pointers are checked by the kernels: there is no fixed number of them.
  template <class Self, class Visit>
  static void visit_tensors(Self&, Visit&&) {}
};

void validate(OptimizerGroupProblem const& problem);  // throws Error(bad_request), naming the tensor

}  // namespace cosmati
