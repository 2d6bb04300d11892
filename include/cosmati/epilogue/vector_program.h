// An epilogue over a run of elements on the CPU: one short vectorised loop an operation, a block of elements
// at a time.
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

// What one run reads and writes. `result` may be the very pointer of any stream of stride 1 (in place); apart
// from that, outputs overlap nothing. Scalars, operands and stores are in the order of the expression's
// lists; what the expression does not use may be null.
template <class Real>
struct VectorArguments {
  Stream<Real> accumulator;
  Stream<Real> source;
  Real const* scalars = nullptr;
  Stream<Real> const* operands = nullptr;
  Real* result = nullptr;
  Real* const* stores = nullptr;
};

// Real is float or double. Immutable, a copy shares the contents: any number of threads may run it, each with
// its own scratch. Functions are within 4 ulp; but log and pow of double are the C++ library's, and the error
// of gelu_tanh of double is that of its exponential's argument. Meaning and NaN as in evaluate.h. An
// element's result does not depend on its place in the run.
template <class Real>
class VectorProgram {
 public:
  explicit VectorProgram(Expression const& expression, VectorLevel level = best_vector_level());

  std::size_t scratch_bytes() const;

  // Elements 0 to count - 1. `scratch` holds scratch_bytes() bytes of any alignment and content. Allocates
  // nothing.
  void run(Index count, VectorArguments<Real> const& arguments, void* scratch) const noexcept;

 private:
  std::shared_ptr<detail::VectorCode<Real> const> code_;
};

}  // namespace cosmati::epilogue
