// Computes the majors, vector widths and strides of a matrix product.
#include "src/plan/gemm/canonical.h"

#include <algorithm>
#include <utility>

namespace cosmati::plan {
namespace {

// The stride along an extent of 1 is irrelevant; it becomes 0.
Index stride_of(TensorDescription const& tensor, int dimension) {
  return tensor.extent(dimension) > 1 ? tensor.layout.stride[dimension] : 0;
}

// `row` and `column` are dimensions of the tensor; dimension 0 is the batch.
MatrixForm form_of(TensorDescription const& tensor, int row, int column, bool by_pointers = false) {
  MatrixForm form;
  form.type = tensor.type;
  form.row_stride = stride_of(tensor, row);
  form.column_stride = stride_of(tensor, column);
  form.batch_stride = by_pointers ? 0 : stride_of(tensor, 0);
  form.alignment = std::max(tensor.alignment, size_of(tensor.type));
  form.present = true;
  return form;
}

// The largest vector width (a power of two, at most 16 bytes) at which vectors stay aligned, given the other
// stride and the batch stride.
int aligned_width(MatrixForm const& form, Index stride) {
  int const size = size_of(form.type);
  int width = 1;
  while (2 * width * size <= 16 && form.alignment % (2 * width * size) == 0 && stride % (2 * width) == 0 &&
         form.batch_stride % (2 * width) == 0)
    width *= 2;
  return width;
}

int width_along_n(MatrixForm const& form) {
  return form.by_n && form.column_stride == 1 ? aligned_width(form, form.row_stride) : 1;
}

MatrixForm operand_form(TensorDescription const& tensor, std::vector<std::string> const& indices,
                        bool swapped) {
  MatrixForm form;
  form.type = tensor.type;
  form.alignment = std::max(tensor.alignment, size_of(tensor.type));
  form.by_m = form.by_n = false;
  form.present = true;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    Index const stride = stride_of(tensor, static_cast<int>(d));
    if (indices[d] == "batch") {
      form.batch_stride += stride;
    } else if ((indices[d] == "m") != swapped) {
      form.row_stride += stride;
      form.by_m = true;
    } else {
      form.column_stride += stride;
      form.by_n = true;
    }
  }
  form.width = width_along_n(form);
  return form;
}

DataType evaluation_type(GemmProblem const& problem, DataType sum, bool identity) {
  if (sum == DataType::f64) return DataType::f64;
  if (sum == DataType::s32) return identity ? DataType::s32 : DataType::f64;
  bool const wide =
      (problem.c.present() && problem.c.type == DataType::f64) ||
      std::any_of(problem.epilogue.operands.begin(), problem.epilogue.operands.end(),
                  [](TensorDescription const& operand) { return operand.type == DataType::f64; });
  return wide ? DataType::f64 : DataType::f32;
}

}  // namespace

CanonicalGemm canonical(GemmProblem const& problem, std::optional<bool> swapped) {
  CanonicalGemm form;
  form.batch = problem.batch();
  form.k = problem.k();
  form.a = form_of(problem.a, 1, 2, problem.by_pointers);
  form.b = form_of(problem.b, 2, 1, problem.by_pointers);
  if (form.k == 0)  // operands without elements have no meaningful strides
    for (MatrixForm* operand : {&form.a, &form.b}) operand->row_stride = operand->batch_stride = 0;
  form.d = form_of(problem.d, 1, 2, problem.by_pointers);
  form.swapped = swapped.value_or(form.d.column_stride != 1 && form.d.row_stride == 1);
  form.m = form.swapped ? problem.n() : problem.m();
  form.n = form.swapped ? problem.m() : problem.n();
  int const row = form.swapped ? 2 : 1, column = form.swapped ? 1 : 2;
  if (form.swapped) std::swap(form.a, form.b);
  form.d = form_of(problem.d, row, column, problem.by_pointers);
  form.d.width = width_along_n(form.d);
  auto const& expression = problem.epilogue.expression;
  if (expression.uses_source()) {
    form.c = form_of(problem.c, row, column, problem.by_pointers);
    form.c.width = width_along_n(form.c);
  }
  for (std::size_t i = 0; i < problem.epilogue.operands.size(); ++i)
    form.operands.push_back(
        operand_form(problem.epilogue.operands[i], expression.operands()[i].indices, form.swapped));
  for (TensorDescription const& store : problem.epilogue.stores) {
    form.stores.push_back(form_of(store, row, column));
    form.stores.back().width = width_along_n(form.stores.back());
  }
  form.by_pointers = problem.by_pointers;
  form.of_pieces = splits_factors(problem.compute) && problem.a.type == piece_type(problem.compute);
  form.fast_sums = problem.compute == ComputeMode::fast_accumulation;
  form.identity = expression == epilogue::Expression();
  form.sum = problem.accumulator.value_or(accumulator_type(problem.a.type, problem.b.type));
  form.evaluation = evaluation_type(problem, form.sum, form.identity);
  return form;
}

Along direction_of_result(CanonicalGemm const& form) {
  bool const along_n = form.d.column_stride == 1 || form.d.row_stride != 1;
  return along_n ? Along::k : Along::mn;
}

int width_of(MatrixForm const& operand, Along along, Index outer, Index depth) {
  bool const deep = along == Along::k;
  Index const unit = deep ? operand.column_stride : operand.row_stride;
  if (unit != 1 && (deep ? depth : outer) > 1) return 1;
  return aligned_width(operand, deep ? operand.row_stride : operand.column_stride);
}

OperandAccess access_of(MatrixForm const& operand) {
  bool const by_threads = operand.by_threads;
  if (by_threads && operand.transposed) return {Along::k, 1, true, true};
  if (operand.column_stride == 1) return {Along::k, aligned_width(operand, operand.row_stride), by_threads};
  if (operand.row_stride == 1) return {Along::mn, aligned_width(operand, operand.column_stride), by_threads};
  return {operand.row_stride < operand.column_stride ? Along::mn : Along::k, 1, by_threads};
}

}  // namespace cosmati::plan
