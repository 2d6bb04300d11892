// The matrix product, three loops around a sum, for each batch.
#include "cosmati/epilogue/parse.h"
#include "reference/elements.h"
#include "reference/epilogue.h"
#include "reference/reference.h"

namespace cosmati::reference {
namespace {

// sum over k of a[i, m, k] * b[i, k, n]
double sum_of_products(Input const& a, Input const& b, Index i, Index m, Index n) {
  double sum = 0;
  for (Index k = 0; k < a.extent(2); ++k) sum += a(i, m, k) * b(i, k, n);
  return sum;
}

// The same sum for integers, exact modulo 2^64 (products of 8-bit integers cannot overflow it).
double integer_sum_of_products(Input const& a, Input const& b, Index i, Index m, Index n) {
  unsigned long long sum = 0;
  for (Index k = 0; k < a.extent(2); ++k)
    sum += static_cast<unsigned long long>(a.integer(i, m, k) * b.integer(i, k, n));
  return static_cast<double>(static_cast<long long>(sum));
}

}  // namespace

// d[i, m, n] = epilogue(sum over k of a[i, m, k] * b[i, k, n], c[i, m, n])
template <>
void run(GemmProblem const& problem, GemmProblem::Arguments const& arguments) {
  if (problem.by_pointers) {
    for (Index i = 0; i < problem.batch(); ++i)
      run(matrix_of_batch(problem), MatrixOfBatch(problem, arguments, i).arguments);
    return;
  }
  Input const a(problem.a, arguments.a);
  Input const b(problem.b, arguments.b);
  Input const c(problem.c, arguments.c);
  Output const d(problem.d, arguments.d);
  ElementEpilogue const epilogue(problem.epilogue, epilogue::gemm_indices, arguments.operands,
                                 arguments.scalars, arguments.stores);
  bool const integers = accumulator_type(problem.a.type, problem.b.type) == DataType::s32;
  bool const uses_c = problem.epilogue.expression.uses_source();
  for_each_index(d.shape(), [&](Position const& at) {
    double const sum = integers ? integer_sum_of_products(a, b, at[0], at[1], at[2])
                                : sum_of_products(a, b, at[0], at[1], at[2]);
    d(at) = epilogue(sum, uses_c ? c(at) : 0, at);
  });
}

}  // namespace cosmati::reference
