// A fully connected layer as three matrix products: only the layouts differ.
#include "cosmati/ops/fully_connected.h"

#include <utility>

#include "src/ops/check.h"

namespace cosmati {
namespace {

// A matrix (rows, columns) as a batch of one, or its transpose. Only the rank is checked here;
// validate(GemmProblem) checks the rest.
TensorDescription matrix(char const* name, TensorDescription const& tensor, bool transposed = false) {
  check_tensor("fully connected", {name, tensor}, Role::input);
  check_rank("fully connected", {name, tensor}, 2);
  int const row = transposed ? 1 : 0;
  Layout const& layout = tensor.layout;
  return {tensor.type,
          {{1, layout.extent(row), layout.extent(1 - row)}, {0, layout.stride[row], layout.stride[1 - row]}}};
}

GemmProblem product(TensorDescription const& a, TensorDescription const& b, TensorDescription const& d) {
  GemmProblem problem;
  problem.a = a;
  problem.b = b;
  problem.d = d;
  return problem;
}

}  // namespace

GemmProblem fully_connected_forward(TensorDescription const& x, TensorDescription const& w,
                                    TensorDescription const& y, Epilogue epilogue) {
  GemmProblem problem = product(matrix("x", x), matrix("w", w, true), matrix("y", y));
  problem.epilogue = std::move(epilogue);
  return problem;
}

GemmProblem fully_connected_data(TensorDescription const& dy, TensorDescription const& w,
                                 TensorDescription const& dx) {
  return product(matrix("dy", dy), matrix("w", w), matrix("dx", dx));
}

GemmProblem fully_connected_filter(TensorDescription const& dy, TensorDescription const& x,
                                   TensorDescription const& dw) {
  return product(matrix("dy", dy, true), matrix("x", x), matrix("dw", dw));
}

}  // namespace cosmati
