// Validation of matrix products.
#include "cosmati/ops/gemm.h"

#include <fmt/format.h>

#include "cosmati/epilogue/parse.h"
#include "src/ops/check.h"
#include "src/ops/number_types.h"

namespace cosmati {
namespace {

constexpr char const* gemm_name = "gemm";

void check_extent(Named tensor, int dimension, Named model, int model_dimension) {
  Index const expected = model.tensor.extent(model_dimension);
  if (tensor.tensor.extent(dimension) == expected) return;
  refuse(gemm_name, fmt::format("{} is {}, {} is {}; extent {} of {} must be {}, extent {} of {}",
                                tensor.name, to_string(tensor.tensor), model.name, to_string(model.tensor),
                                dimension, tensor.name, expected, model_dimension, model.name));
}

}  // namespace

void validate(GemmProblem const& problem) {
  check_tensors(gemm_name, problem);
  Named const a{"a", problem.a}, b{"b", problem.b}, c{"c", problem.c}, d{"d", problem.d};
  for (Named const& tensor : {a, b, d}) check_rank(gemm_name, tensor, 3);
  check_extent(b, 1, a, 2);  // k
  check_extent(d, 1, a, 1);  // m
  check_extent(d, 2, b, 2);  // n
  check_extent(a, 0, d, 0);  // batch
  check_extent(b, 0, d, 0);
  if (problem.c.present()) check_same_shape(gemm_name, c, d);
  if (problem.accumulator) {
    DataType const usual = accumulator_type(problem.a.type, problem.b.type);
    bool const halves = problem.a.type == DataType::f16 && problem.b.type == DataType::f16;
    if (*problem.accumulator != usual && !(halves && *problem.accumulator == DataType::f16))
      refuse(gemm_name, fmt::format("products of {} and {} are summed in {}{}, not in {}",
                                    name_of(problem.a.type), name_of(problem.b.type), name_of(usual),
                                    halves ? " or f16" : "", name_of(*problem.accumulator)));
  }
  if (problem.compute == ComputeMode::fast_accumulation &&
      (!is_float8(problem.a.type) || !is_float8(problem.b.type)))
    refuse(gemm_name, fmt::format("fast_accumulation applies to 8-bit floats; a and b are {} and {}",
                                  name_of(problem.a.type), name_of(problem.b.type)));
  if (splits_factors(problem.compute) && (problem.a.type != DataType::f32 || problem.b.type != DataType::f32))
    refuse(gemm_name, fmt::format("{} splits factors of f32; a and b are {} and {}", name_of(problem.compute),
                                  name_of(problem.a.type), name_of(problem.b.type)));
  check_epilogue(gemm_name, problem.epilogue, epilogue::gemm_indices, d, problem.c.present());
}

GemmProblem matrix_of_batch(GemmProblem const& problem) {
  GemmProblem one = problem;
  one.by_pointers = false;
  for (TensorDescription* tensor : {&one.a, &one.b, &one.c, &one.d})
    if (tensor->present()) tensor->layout.shape[0] = 1;
  // The matrices of a strided batch may begin at any element, so only element alignment remains.
  auto const begin_anywhere = [](TensorDescription& tensor) { tensor.alignment = size_of(tensor.type); };
  for (TensorDescription& store : one.epilogue.stores) {
    store.layout.shape[0] = 1;
    begin_anywhere(store);
  }
  for (std::size_t i = 0; i < one.epilogue.operands.size(); ++i) {
    auto const& indices = problem.epilogue.expression.operands()[i].indices;
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (indices[d] == "batch") {
        one.epilogue.operands[i].layout.shape[static_cast<int>(d)] = 1;
        begin_anywhere(one.epilogue.operands[i]);
      }
  }
  return one;
}

MatrixOfBatch::MatrixOfBatch(GemmProblem const& problem, GemmProblem::Arguments const& all, Index matrix) {
  auto const input = [matrix](void const* array) {
    return array == nullptr ? nullptr : static_cast<void const* const*>(array)[matrix];
  };
  arguments.a = input(all.a);
  arguments.b = input(all.b);
  arguments.c = input(all.c);
  arguments.d = all.d == nullptr ? nullptr : static_cast<void* const*>(all.d)[matrix];
  auto const bytes_on = [](TensorDescription const& tensor, Index stride) {
    return static_cast<std::ptrdiff_t>(stride * size_of(tensor.type));
  };
  auto const& epilogue = problem.epilogue;
  for (std::size_t i = 0; i < epilogue.operands.size(); ++i) {
    auto const& indices = epilogue.expression.operands()[i].indices;
    Index stride = 0;
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (indices[d] == "batch") stride += matrix * epilogue.operands[i].layout.stride[d];
    operands[i] = static_cast<std::byte const*>(all.operands[i]) + bytes_on(epilogue.operands[i], stride);
  }
  for (std::size_t i = 0; i < epilogue.stores.size(); ++i)
    stores[i] = static_cast<std::byte*>(all.stores[i]) +
                bytes_on(epilogue.stores[i], matrix * epilogue.stores[i].layout.stride[0]);
  arguments.operands = {operands, epilogue.operands.size()};
  arguments.stores = {stores, epilogue.stores.size()};
  arguments.scalars = all.scalars;
}

DataType accumulator_type(DataType a, DataType b) {
  if (a == DataType::f64 || b == DataType::f64) return DataType::f64;
  return is_integer(a) && is_integer(b) ? DataType::s32 : DataType::f32;
}

}  // namespace cosmati
