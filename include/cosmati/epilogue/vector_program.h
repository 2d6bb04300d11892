// An epilogue over a run of elements on the CPU: one short vectorized loop per operation, over a block of
// elements at a time.
#pragma once
#include <cstddef>
#include <memory>

#include "cosmati/core/config.h"
#include "cosmati/epilogue/expression.h"
#include "cosmati/epilogue/vector_level.h"

namespace cosmati::epilogue {

namespace detail {
template <class Real>
struct VectorCode;
}  // namespace detail

// Values of one kind along the run: element i is data[i * stride].
template <class Real>
struct Stream {
  Real const* data = nullptr;
  int stride = 1;  // 0 or 1
};

// The inputs and outputs of one run. `result` may equal the pointer of any stream of stride 1 (in place);
// otherwise outputs must not overlap other arrays. Scalars, operands and stores are in the order of the
// expression's lists; unused ones may be null.
template <class Real>
struct VectorArguments {
  Stream<Real> accumulator;
  Stream<Real> source;
  Real const* scalars = nullptr;
  Stream<Real> const* operands = nullptr;
  Real* result = nullptr;
  Real* const* stores = nullptr;
};

// Real is float or double. Immutable; copies share the contents. Threads may run it concurrently, each with
// its own scratch memory. Functions are accurate to 4 ulp, except that log and pow of double come from the
// C++ library, and the error of gelu_tanh of double is that of its exponential's argument. Semantics and NaN
// as in evaluate.h. An element's result does not depend on its position in the run.
template <class Real>
class VectorProgram {
 public:
  explicit VectorProgram(Expression const& expression, VectorLevel level = best_vector_level());

  std::size_t scratch_bytes() const;

  // Computes elements 0 to count - 1. `scratch` holds scratch_bytes() bytes of any alignment and content.
  // Allocates nothing.
  void run(Index count, VectorArguments<Real> const& arguments, void* scratch) const noexcept;

 private:
  std::shared_ptr<detail::VectorCode<Real> const> code_;
};

}  // namespace cosmati::epilogue
