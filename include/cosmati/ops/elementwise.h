// Operations that access each element once: scaled addition, dropout, layout transformation, reduction.
#pragma once
#include "cosmati/ops/operation.h"

namespace cosmati {

// y = alpha*a + beta*b; without b: y = alpha*a. y may be a or b. All tensors have the same shape.
struct AddProblem {
  TensorDescription a;
  TensorDescription b;
  TensorDescription y;
  double alpha = 1;
  double beta = 1;

  struct Arguments {
    void const* a = nullptr;
    void const* b = nullptr;
    void* y = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("a", Role::input, problem.a, &Arguments::a);
    if (problem.b.present()) visit("b", Role::input, problem.b, &Arguments::b);
    visit("y", Role::output, problem.y, &Arguments::y);
  }
};

// y = kept ? x / (1 - probability) : 0; x and y have the same shape. Element i (in row-major order of the
// indices) is kept with probability 1 - probability, decided by Philox4x32-10 of (seed, step, i)
// (DropoutMask, core/philox.h): the same mask on every backend, regardless of the layout and the number of
// threads. Backward is the same operation on dy with the same seed and step.
struct DropoutProblem {
  TensorDescription x;
  TensorDescription y;
  double probability = 0.5;
  unsigned long long seed = 0;

  struct Arguments {
    void const* x = nullptr;
    void* y = nullptr;
    unsigned long long step = 0;  // selects a different mask for each training step
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("y", Role::output, problem.y, &Arguments::y);
  }
};

// y = x, in another layout or type; x and y have the same shape.
struct TransformProblem {
  TensorDescription x;
  TensorDescription y;

  struct Arguments {
    void const* x = nullptr;
    void* y = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("y", Role::output, problem.y, &Arguments::y);
  }
};

enum class ReduceOperation : unsigned char { sum, mean, max, min, sum_of_squares };
inline constexpr int reduce_operation_count = 5;
char const* name_of(ReduceOperation operation);  // sum, mean, max, min, sum-of-squares
ReduceOperation parse_reduce_operation(
    std::string const& name);  // throws Error(bad_request) listing the valid names

// y = operation over the axes in which y's extent is 1; in the other axes, x and y have the same extent. x
// and y have the same rank. max and min propagate NaN. An empty sum is 0; an empty mean, max or min is
// undefined.
struct ReduceProblem {
  ReduceOperation operation = ReduceOperation::sum;
  TensorDescription x;
  TensorDescription y;

  struct Arguments {
    void const* x = nullptr;
    void* y = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("y", Role::output, problem.y, &Arguments::y);
  }
};

void validate(AddProblem const& problem);        // throws Error(bad_request)
void validate(DropoutProblem const& problem);    // throws Error(bad_request)
void validate(TransformProblem const& problem);  // throws Error(bad_request)
void validate(ReduceProblem const& problem);     // throws Error(bad_request)

}  // namespace cosmati
