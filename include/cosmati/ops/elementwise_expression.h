// A chain of element-wise operations as one expression, evaluated in one pass over memory.
#pragma once
#include <span>
#include <string_view>

#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/operation.h"

namespace cosmati {

// y = expression(x, operands...), element by element, in the epilogue language: `acc` is the element of x,
// name[indices] one of an operand, which is broadcast along the indices that it does not name. y and the
// stores, additional outputs, have the shape of x, and may be x.
//   relu((acc - mean[c]) * scale[c] + bias[c]) + residual[n, c, h, w]
// Computed in f32, in f64 if a tensor is f64 or s32. Here `c` is an index, never an operand.
struct ElementwiseProblem {
  TensorDescription x;
  TensorDescription y;
  Epilogue epilogue;

  struct Arguments {
    void const* x = nullptr;
    void* y = nullptr;
    std::span<void const* const> operands = {};
    std::span<double const> scalars = {};
    std::span<void* const> stores = {};
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("y", Role::output, problem.y, &Arguments::y);
  }
};

// The letters of the indices of a tensor of this rank, 1 to 5: i; m, n; batch, m, n; n, c, h, w;
// n, c, d, h, w. None for other ranks.
std::span<std::string_view const> elementwise_indices(int rank);

inline constexpr int max_elementwise_operands = 7;  // in addition to x
inline constexpr int max_elementwise_stores = 3;    // in addition to y

void validate(ElementwiseProblem const& problem);  // throws Error(bad_request)

}  // namespace cosmati
