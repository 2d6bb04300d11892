// Turns a plan of a convolution into the parameters of its launches.
#pragma once
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

}  // namespace cosmati::plan
