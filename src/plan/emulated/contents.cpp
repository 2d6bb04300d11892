// Describes the contents of the emulator's catalogue without linking its kernels.
#include "src/plan/emulated/contents.h"

#include <fmt/format.h>

#include "src/ops/number_types.h"
#include "src/plan/conv/filter/filter_copy.h"

namespace cosmati::emulator {
namespace {

bool lies_deep(OperandAccess const& access) { return access.along == Along::k; }

}  // namespace

KernelTypes kernel_types(DataType a, DataType b, DataType sum, Multiply multiply) {
  if (multiply == Multiply::mma || multiply == Multiply::wmma || multiply == Multiply::wgmma) return {a, b};
  bool const known = is_int8(a) && multiply != Multiply::fma
                         ? is_int8(b)
                         : a == b && (a == DataType::f32 || a == DataType::f64 || a == DataType::f16);
  return known ? KernelTypes{a, b} : KernelTypes{sum, sum};
}

std::size_t widening_bytes(GemmProblem const& problem, Multiply multiply) {
  KernelTypes const types =
      kernel_types(problem.a.type, problem.b.type,
                   problem.accumulator.value_or(accumulator_type(problem.a.type, problem.b.type)), multiply);
  auto const bytes = [](TensorDescription const& tensor, DataType type) {
    return tensor.type == type ? 0 : padded_bytes(tensor.layout.span() * size_of(type));
  };
  return static_cast<std::size_t>(bytes(problem.a, types.a) + bytes(problem.b, types.b));
}

bool has_stream_k(GemmProblem const& problem, MainLoop main_loop, Multiply multiply) {
  DataType const a = problem.a.type, b = problem.b.type;
  if (multiply == Multiply::wgmma) return a == DataType::bf16 && b == DataType::bf16;
  KernelTypes const types =
      kernel_types(a, b, problem.accumulator.value_or(accumulator_type(a, b)), multiply);
  if (main_loop == MainLoop::warp_specialized) return types.a == DataType::f64;
  return main_loop == MainLoop::multistage && multiply == Multiply::fma && types.a == DataType::f32;
}

bool has_sum_of_parts(GemmProblem const& problem, Multiply multiply) {
  return multiply == Multiply::wgmma && problem.a.type == DataType::bf16 && problem.b.type == DataType::bf16;
}

bool has_wgmma_by_threads(DataType type, OperandAccess const& a, OperandAccess const& b) {
  return lies_deep(b) && (type == DataType::tf32 || (type == DataType::bf16 && lies_deep(a)));
}

std::string pointers_violation(plan::CanonicalGemm const& form) {
  auto const deep = [](plan::MatrixForm const& operand) { return lies_deep(plan::access_of(operand)); };
  if (form.a.type == DataType::bf16 && form.b.type == DataType::bf16 && deep(form.a) && deep(form.b))
    return {};
  return fmt::format(
      "with pointers, the emulator has this kernel for bf16 contiguous along k, not for {} and {}",
      name_of(form.a.type), name_of(form.b.type));
}

bool has_group(GemmRecipe const& recipe, DataType a, DataType b) {
  GemmPolicy const& p = recipe.policy;
  bool const known = (p.main_loop == MainLoop::double_buffered && a == DataType::f32) ||
                     (p.multiply == Multiply::mma && a == DataType::bf16) ||
                     (p.multiply == Multiply::wgmma && a == DataType::bf16 && lies_deep(recipe.b));
  return known && a == b && recipe.sum == DataType::f32;
}

std::string group_violation(GemmRecipe const& recipe, plan::GroupForm const& group) {
  DataType const a = group.common.a.type, b = group.common.b.type;
  if (has_group(recipe, a, b)) return {};
  return fmt::format(
      "the emulator has no grouped kernel for {} and {} with b contiguous along {}; it has f32 by "
      "double_buffered, bf16 "
      "by multistage with mma, and bf16 by warp_specialized with b along k",
      name_of(a), name_of(b), lies_deep(recipe.b) ? "k" : "n");
}

bool multiplies_convolution(MainLoop main_loop, Multiply multiply, DataType a, DataType b) {
  if (multiply == Multiply::mma) return a == b && (a == DataType::f16 || a == DataType::tf32);
  if (multiply == Multiply::dp4a) return a == DataType::s8 && b == DataType::s8;
  return main_loop == MainLoop::double_buffered || accumulator_type(a, b) == DataType::f32;
}

bool has_window_product(DataType a, DataType b) {
  return a == b && (a == DataType::f16 || a == DataType::tf32 || a == DataType::s8);
}

DataType kernel_type(DataType a, DataType b, ConvolutionRecipe const& recipe) {
  DataType const sum = recipe.product.sum;
  bool const mma = recipe.product.policy.multiply == Multiply::mma;
  if (recipe.multiplies_matrices() && (mma || (a == DataType::s8 && b == DataType::s8))) return a;
  return sum;
}

std::size_t widening_bytes(ConvolutionProblem const& given, ConvolutionRecipe const& recipe) {
  ConvolutionProblem const problem = plan::with_filter_copied(given, plan::filter_repack(recipe.product));
  bool const filter = problem.direction == ConvolutionDirection::filter;
  bool const forward = problem.direction == ConvolutionDirection::forward;
  TensorDescription const &a = forward ? problem.x : problem.y, &b = filter ? problem.x : problem.w;
  DataType const type = kernel_type(a.type, b.type, recipe);
  auto const bytes = [&](TensorDescription const& tensor) {
    return tensor.type == type ? 0 : padded_bytes(tensor.layout.span() * size_of(type));
  };
  return static_cast<std::size_t>(bytes(a) + bytes(b));
}

}  // namespace cosmati::emulator
