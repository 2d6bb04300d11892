// Validation of matrix products.
#include "cosmati/ops/gemm.h"

#include <fmt/format.h>

#include "cosmati/epilogue/parse.h"
#include "src/ops/check.h"

namespace cosmati {
namespace {

constexpr char const* operation = "gemm";

void check_extent(Named tensor, int dimension, Named model, int model_dimension) {
  Index const expected = model.tensor.extent(model_dimension);
  if (tensor.tensor.extent(dimension) == expected) return;
  refuse(operation, fmt::format("{} is {}, {} is {}; extent {} of {} must be {}, extent {} of {}",
                                tensor.name, to_string(tensor.tensor), model.name, to_string(model.tensor),
                                dimension, tensor.name, expected, model_dimension, model.name));
}

}  // namespace

void validate(GemmProblem const& problem) {
  check_tensors(operation, problem);
  Named const a{"a", problem.a}, b{"b", problem.b}, c{"c", problem.c}, d{"d", problem.d};
  for (Named const& tensor : {a, b, d}) check_rank(operation, tensor, 3);
  check_extent(b, 1, a, 2);  // k
  check_extent(d, 1, a, 1);  // m
  check_extent(d, 2, b, 2);  // n
  check_extent(a, 0, d, 0);  // batch
  check_extent(b, 0, d, 0);
  if (problem.c.present()) check_same_shape(operation, c, d);
  check_epilogue(operation, problem.epilogue, epilogue::gemm_indices, d, problem.c.present());
}

DataType accumulator_type(DataType a, DataType b) {
  if (a == DataType::f64 || b == DataType::f64) return DataType::f64;
  return is_integer(a) && is_integer(b) ? DataType::s32 : DataType::f32;
}

}  // namespace cosmati
