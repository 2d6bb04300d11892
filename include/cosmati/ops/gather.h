// Gathers rows of a table in any order, e.g. a batch from a data set in device memory.
#pragma once
#include "cosmati/ops/operation.h"

namespace cosmati {

// y[n, f] = scale * x[order[n], f] + shift, converted to y's type. Rows of x and y are contiguous. order[n]
// must be in [0, rows of x); it is read on the device without checks.
struct GatherProblem {
  TensorDescription x;      // (rows, features)
  TensorDescription order;  // (N), s32
  TensorDescription y;      // (N, features)
  double scale = 1;
  double shift = 0;

  struct Arguments {
    void const* x = nullptr;
    void const* order = nullptr;
    void* y = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("order", Role::input, problem.order, &Arguments::order);
    visit("y", Role::output, problem.y, &Arguments::y);
  }
};

void validate(GatherProblem const& problem);  // throws Error(bad_request)

}  // namespace cosmati
