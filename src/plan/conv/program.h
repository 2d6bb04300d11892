// Turns a convolution's plan into its program.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "src/plan/conv/kernel_parts.h"
#include "src/plan/gemm/program/passes.h"
#include "src/program/program.h"

namespace cosmati::plan {

// Returns the program of a plan. Not for gemm, image_products, patch_gemm, image_slices, group_slices,
// channels_last and the bias gradient, which prepare other plans.
program::Program program_of(Plan<ConvolutionProblem> const& plan);

// Prepares the plan's program for its backend.
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_program(Plan<ConvolutionProblem> const& plan);

// Common fields of the traits of these kernels.
struct KernelTypes {
  DataType image = DataType::f32, filter = DataType::f32, sum = DataType::f32;
  std::string epilogue, destination;
  std::string print() const;
};
// Returns the emulator's types for sums of this type; the operands have the same type.
KernelTypes emulated_types(DataType sum);

// Builds the program of a plan.
class ConvolutionProgram {
 public:
  // The workspace begins with the memory that the plan's kernels write, followed by the copied filter and the
  // converted tensors.
  explicit ConvolutionProgram(Plan<ConvolutionProblem> const& plan);
  // For algorithms that lay out the workspace themselves, and whose kernels accept operands of every type.
  ConvolutionProgram(Plan<ConvolutionProblem> const& plan, program::Workspace workspace);

  bool is_emulated() const { return plan_.device.backend == Backend::emulator; }
  // Returns the types of kernels that compute this form.
  KernelTypes types_of(ConvolutionForm const& form) const;
  // Returns the form with the operands as the kernels read them.
  ConvolutionForm in_kernel(ConvolutionForm form) const;

  // The image with windows, or x of a filter gradient; the filter, or dy.
  KernelOperand image{0}, filter{1};
  // Adds a pass that copies `filter`, as `operand` describes it, to the workspace.
  void repack_filter(MatrixForm const& operand, RepackRecipe const& repack, Index outer, Index depth,
                     Index batch, char const* slot);
  static void* result(program::Run const& run) { return run.tensors[2]; }

  // Returns a function that writes the parameters of a kernel that locates the elements of `image` and
  // `filter` by `window`.
  template <class Arguments>
  auto window_writer(Arguments window, ConvolutionForm form) const {
    return [window, form = std::move(form), x = image, w = filter](program::Run const& run, auto& to) {
      to.window = window;
      to.window.image = x.of(run);
      to.window.filter = w.of(run);
      fill_destination(to.d, form.d, result(run));
      fill_epilogue(to.epilogue, form, run);
    };
  }

  // Adds a complete kernel specification, for a pass over an operand.
  std::size_t add_pass(program::KernelSpec kernel);
  // Adds a kernel, with declarations and label; the first kernel added computes the sums. The size of the
  // parameters is asserted before anything else.
  template <class Parameters>
  std::size_t add_kernel(program::KernelSpec kernel, ConvolutionForm const& form) {
    return add_kernel(std::move(kernel), form, sizeof(Parameters));
  }
  template <class Parameters, class Write>
  void launch(std::size_t kernel, program::Grid grid, Write write, std::size_t bytes = sizeof(Parameters)) {
    program_.steps.push_back(program::launch_of<Parameters>(kernel, grid, std::move(write), bytes));
  }
  // Adds launches for a grid whose z is the group, as many as its limit requires; each calls write(run,
  // first, parameters) with its first z.
  template <class Parameters, class Write>
  void launch_groups(std::size_t kernel, program::Grid grid, Write const& write,
                     std::size_t bytes = sizeof(Parameters)) {
    launch_batch<Parameters>(program_, kernel, grid, write, bytes);
  }
  std::size_t add_transform(program::Transform const& transform);  // adds equal transforms only once
  std::size_t add_product(Plan<GemmProblem> product);
  void call(program::Step step) { program_.steps.push_back(std::move(step)); }
  program::Program finish() && { return std::move(program_); }

 private:
  std::size_t add_kernel(program::KernelSpec kernel, ConvolutionForm const& form,
                         std::size_t parameter_bytes);

  Plan<ConvolutionProblem> const& plan_;
  DataType kernel_type_ = DataType::f32;  // the type of both operands in the emulator
  bool has_main_ = false;
  program::Program program_;
};

}  // namespace cosmati::plan
