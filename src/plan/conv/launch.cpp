// The pointers and strides of a convolution's launches.
#include "src/plan/conv/launch.h"

#include <utility>

namespace cosmati::plan {

void* moved(void const* data, Index elements, DataType type) {
  auto const address = reinterpret_cast<std::uintptr_t>(data);
  return reinterpret_cast<void*>(address + static_cast<std::uintptr_t>(elements * size_of(type)));
}

ConvolutionPointers pointers_of(ConvolutionProblem const& problem, ConvolutionForm const& form,
                                ConvolutionProblem::Arguments const& arguments) {
  ConvolutionPointers pointers{};
  switch (problem.direction) {
    case ConvolutionDirection::forward: pointers = {arguments.x, arguments.w, arguments.y}; break;
    case ConvolutionDirection::data: pointers = {arguments.dy, arguments.w, arguments.dx}; break;
    default: pointers = {arguments.dy, arguments.x, arguments.dw}; break;
  }
  if (form.swapped) std::swap(pointers.a, pointers.b);
  return pointers;
}

WindowArguments window_arguments(WindowForm const& form, void const* data) {
  WindowArguments arguments = form.arguments;
  arguments.data = moved(data, form.base, form.type);
  return arguments;
}

DigitArguments digit_arguments(DigitForm const& form, void const* data) {
  DigitArguments arguments = form.arguments;
  arguments.data = moved(data, form.base, form.type);
  return arguments;
}

}  // namespace cosmati::plan
