// Common parts of the sliding filter-gradient kernels depthwise_filter and wgrad_direct.
#pragma once
#include "src/plan/conv/form.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::plan {

inline FoundDigit tap_digit(ConvolutionForm const& form, char letter) {
  return find_digit(letter, form.image_outer(), form.image().arguments.outer);
}

// Sets the windows of x, the strides of dy and the number of taps for the gradient of `form`.
template <class Gradient>
void describe_gradient(Gradient& gradient, ConvolutionForm const& form) {
  WindowForm const& image = form.image();
  WindowForm const& dy = form.image_is_a ? form.b : form.a;
  auto const output = [&](char letter) { return find_digit(letter, form.k, image.arguments.depth); };
  auto const stride = [&](char letter) { return find_digit(letter, form.k, dy.arguments.depth).step.stride; };
  gradient.image = image.type;
  gradient.gradient = dy.type;
  auto& p = gradient.parameters;
  SlidingArguments& window = p.window;
  WindowArguments const& all = image.arguments;
  FoundDigit const none;
  window.rows = window_axis(output('p'), tap_digit(form, 'r'), none, &IndexStride::down, all.top, all.height);
  window.columns =
      window_axis(output('q'), tap_digit(form, 's'), none, &IndexStride::right, all.left, all.width);
  window.images = static_cast<int>(output('n').extent);
  window.image_stride = output('n').step.stride;
  window.image_group = all.batch_stride;
  window.outputs = static_cast<int>((form.image_is_a ? form.n : form.m)[2].extent);
  p.gradient_image = stride('n');
  p.gradient_row = stride('p');
  p.gradient_column = stride('q');
  p.gradient_channel = dy.arguments.outer.last.stride;
  p.tap_row_number = static_cast<int>(tap_digit(form, 'r').number);
  p.tap_column_number = static_cast<int>(tap_digit(form, 's').number);
  gradient.image_base =
      image.base - all.top * window.rows.image_stride - all.left * window.columns.image_stride;
  gradient.gradient_base = dy.base;
}

}  // namespace cosmati::plan
