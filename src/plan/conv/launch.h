// From a plan of a convolution to the parameters of its launches.
#pragma once
#include <cstddef>

#include "src/plan/conv/form.h"
#include "src/plan/gemm/launch.h"

namespace cosmati::plan {

// The pointers of a problem by their role in the product.
struct ConvolutionPointers {
  void const* a;
  void const* b;
  void* d;
};
ConvolutionPointers pointers_of(ConvolutionProblem const& problem, ConvolutionForm const& form,
                                ConvolutionProblem::Arguments const& arguments);

// The start address of an operand; with padding it precedes the tensor.
void* moved(void const* data, Index elements, DataType type);

WindowArguments window_arguments(WindowForm const& form, void const* data);
DigitArguments digit_arguments(DigitForm const& form, void const* data);

// The parameters common to all kernels, except the epilogue.
template <class Parameters>
void fill_product(Parameters& parameters, ConvolutionForm const& form, ConvolutionRecipe const& recipe,
                  void const* a, void const* b, std::byte* workspace) {
  parameters.m = form.rows();
  parameters.n = form.columns();
  parameters.k = form.depth();
  parameters.a = window_arguments(form.a, a);
  parameters.b = window_arguments(form.b, b);
  parameters.schedule = schedule_of(recipe.product, workspace);
}

}  // namespace cosmati::plan
