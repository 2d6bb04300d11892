// Common parts of the programs of convolutions, and which algorithms have one.
#include "src/plan/conv/program.h"

#include <fmt/format.h>

#include "src/plan/conv/depthwise_rows.h"
#include "src/plan/conv/dgrad_small_c.h"
#include "src/plan/conv/fft/fft_program.h"
#include "src/plan/conv/filter/depthwise_filter.h"
#include "src/plan/conv/filter/filter_copy.h"
#include "src/plan/conv/filter/grouped_filter.h"
#include "src/plan/conv/filter/wgrad_direct.h"
#include "src/plan/conv/filter/wgrad_pointwise.h"
#include "src/plan/conv/filter/wgrad_small_c.h"
#include "src/plan/conv/filter/wgrad_taps.h"
#include "src/plan/conv/fprop_small_c.h"
#include "src/plan/conv/grouped/group_windows.h"
#include "src/plan/conv/grouped/grouped.h"
#include "src/plan/conv/product_program.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/conv/windows/image_windows.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "src/plan/conv/windows/window_program.h"
#include "src/plan/conv/winograd/winograd_filter.h"
#include "src/plan/conv/winograd/winograd_program.h"
#include "src/plan/emulated/contents.h"
#include "src/program/execute.h"

namespace cosmati::plan {

program::Program program_of(Plan<ConvolutionProblem> const& plan) {
  bool const filter = plan.problem.direction == ConvolutionDirection::filter;
  switch (plan.recipe.algorithm) {
    case ConvolutionAlgorithm::direct_tiled:
      return filter ? wgrad_direct_program(plan) : sliding_program(plan);
    case ConvolutionAlgorithm::depthwise:
      return filter ? depthwise_filter_program(plan) : sliding_program(plan);
    case ConvolutionAlgorithm::depthwise_rows:
      return filter ? depthwise_rows_filter_program(plan) : depthwise_rows_program(plan);
    case ConvolutionAlgorithm::dgrad_small_c: return dgrad_small_c_program(plan);
    case ConvolutionAlgorithm::fprop_small_c: return fprop_small_c_program(plan);
    case ConvolutionAlgorithm::wgrad_pointwise: return wgrad_pointwise_program(plan);
    case ConvolutionAlgorithm::wgrad_small_c: return wgrad_small_c_program(plan);
    case ConvolutionAlgorithm::grouped: return filter ? grouped_filter_program(plan) : grouped_program(plan);
    case ConvolutionAlgorithm::group_windows: return group_windows_program(plan);
    case ConvolutionAlgorithm::image_windows: return image_windows_program(plan);
    case ConvolutionAlgorithm::wgrad_taps: return wgrad_taps_program(plan);
    case ConvolutionAlgorithm::winograd:
      return filter ? winograd_filter_program(plan) : winograd_program(plan);
    case ConvolutionAlgorithm::fft: return fft_program(plan);
    case ConvolutionAlgorithm::dgrad_phases: return window_program(plan);
    case ConvolutionAlgorithm::implicit_gemm:
      if (is_window_product(plan.recipe)) return window_program(plan);
      [[fallthrough]];
    case ConvolutionAlgorithm::direct:
    case ConvolutionAlgorithm::unroll_gemm: return product_program(plan);
    default: throw Error(ErrorCode::bad_request, "the kernel " + plan.kernel + " has no program");
  }
}

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_program(Plan<ConvolutionProblem> const& plan) {
  return program::prepare(plan, program_of(plan));
}

std::string KernelTypes::print() const {
  return fmt::format("{}, {}, {},\n{},\n{}", name_of(image), name_of(filter), name_of(sum), epilogue,
                     destination);
}

KernelTypes emulated_types(DataType sum) { return {sum, sum, sum, "HostEpilogue", "HostDestination"}; }

ConvolutionProgram::ConvolutionProgram(Plan<ConvolutionProblem> const& plan) : plan_(plan) {
  program_.workspace.add(
      plan.recipe.unrolls() ? "flags, partial sums, unrolled image" : "flags and partial sums",
      plan.recipe.product_workspace());
  RepackRecipe const& copied = filter_repack(plan.recipe.product);
  if (copied.bytes > 0) {
    FilterCopy const copy = filter_copy(plan.problem);
    repack_filter(copy.filter, copied, copy.outer, copy.depth, copy.batch, "filter, copied");
  }
  if (!is_emulated()) return;
  ConvolutionProblem const p = with_filter_copied(plan.problem, copied);
  bool const data = p.direction == ConvolutionDirection::data;
  TensorDescription const &first = data ? p.y : p.x,
                          &second = p.direction == ConvolutionDirection::filter ? p.y : p.w;
  kernel_type_ = emulator::kernel_type(first.type, second.type, plan.recipe);
  image = widened(program_, image, first, kernel_type_, "image");
  filter = widened(program_, filter, second, kernel_type_, "filter or gradient");
}

ConvolutionProgram::ConvolutionProgram(Plan<ConvolutionProblem> const& plan, program::Workspace workspace)
    : plan_(plan) {
  program_.workspace = std::move(workspace);
}

void ConvolutionProgram::repack_filter(MatrixForm const& operand, RepackRecipe const& repack, Index outer,
                                       Index depth, Index batch, char const* slot) {
  filter = repacked(program_, filter, operand, repack, outer, depth, batch, slot, is_emulated());
}

KernelTypes ConvolutionProgram::types_of(ConvolutionForm const& form) const {
  if (is_emulated()) return emulated_types(kernel_type_);
  return {form.image().type, (form.image_is_a ? form.b : form.a).type, form.sum, epilogue_text(form),
          destination_text(form)};
}

ConvolutionForm ConvolutionProgram::in_kernel(ConvolutionForm form) const {
  if (is_emulated()) form.a.type = form.b.type = form.unrolled.type = kernel_type_;
  return form;
}

std::size_t ConvolutionProgram::add_pass(program::KernelSpec kernel) {
  return plan::add_kernel(program_, std::move(kernel));
}

std::size_t ConvolutionProgram::add_transform(program::Transform const& transform) {
  auto& all = program_.transforms;
  auto const found = std::find(all.begin(), all.end(), transform);
  auto const number = static_cast<std::size_t>(found - all.begin());
  if (found == all.end()) all.push_back(transform);
  return number;
}

std::size_t ConvolutionProgram::add_product(Plan<GemmProblem> product) {
  program_.products.push_back(std::move(product));
  return program_.products.size() - 1;
}

std::size_t ConvolutionProgram::add_kernel(program::KernelSpec kernel, ConvolutionForm const& form,
                                           std::size_t parameter_bytes) {
  if (!is_emulated()) kernel.declarations = function_text(plan_.problem, form);
  kernel.asserted.insert(kernel.asserted.begin(), {"sizeof(ComposedTraits::Params)", parameter_bytes});
  if (!form.identity) kernel.label = plan_.problem.epilogue.expression.text();
  std::size_t const number = add_pass(std::move(kernel));
  if (!has_main_) program_.main = number;
  has_main_ = true;
  return number;
}

}  // namespace cosmati::plan
