// Rows of a table, taken in any order: how a batch is drawn from a data set that lies on the device.
#pragma once
#include "cosmati/ops/operation.h"

namespace cosmati {

// y[n, f] = scale * x[order[n], f] + shift, converted to y's type. Rows of x and y are without gaps.
// order[n] lies in [0, rows of x); it is read where the kernel runs, and not checked there.
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
