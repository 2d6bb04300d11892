// From the digits of a form to the axes of an image.
#include "src/plan/conv/sliding.h"

#include <algorithm>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/launch.h"

namespace cosmati::plan {
namespace {

int to_int(Index value) { return static_cast<int>(value); }

SlidingForm sliding_form(ConvolutionForm const& form) {
  WindowForm const& image = form.image();
  WindowForm const& filter = form.image_is_a ? form.b : form.a;
  ProductIndex const& pixels = form.image_outer();
  auto const output = [&](char letter) { return find_digit(letter, pixels, image.arguments.outer); };
  auto const tap = [&](char letter) { return find_digit(letter, form.k, image.arguments.depth); };
  auto const weight = [&](char letter) { return find_digit(letter, form.k, filter.arguments.depth); };
  SlidingForm sliding;
  sliding.form = form;
  SlidingArguments& window = sliding.window;
  WindowArguments const& all = image.arguments;
  window.rows = window_axis(output('p'), tap('r'), weight('r'), &DigitStep::down, all.top, all.height);
  window.columns = window_axis(output('q'), tap('s'), weight('s'), &DigitStep::right, all.left, all.width);
  window.images = to_int(output('n').extent);
  window.image_number = to_int(output('n').number);
  window.image_stride = output('n').step.stride;
  window.inputs = to_int(tap('c').extent);
  window.image_input = tap('c').step.stride;
  window.filter_input = weight('c').step.stride;
  window.outputs = to_int((form.image_is_a ? form.n : form.m)[2].extent);
  window.filter_output = filter.arguments.outer.last.stride;
  window.image_group = all.batch_stride;
  window.filter_group = filter.arguments.batch_stride;
  sliding.image_base =
      image.base - all.top * window.rows.image_stride - all.left * window.columns.image_stride;
  sliding.filter_base = filter.base;
  return sliding;
}

}  // namespace

FoundDigit find_digit(char letter, ProductIndex const& index, DigitSteps const& steps) {
  DigitStep const each[3] = {steps.first, steps.middle, steps.last};
  Index number = 1;
  for (std::size_t i = 3; i-- > 0; number *= index[i].extent)
    if (index[i].letter == letter) return {index[i].extent, each[i], number};
  return {};
}

WindowAxis window_axis(FoundDigit const& output, FoundDigit const& tap, FoundDigit const& weight,
                       int DigitStep::*step, int origin, int size) {
  WindowAxis axis;
  axis.outputs = to_int(output.extent);
  axis.taps = to_int(tap.extent);
  axis.origin = origin;
  axis.size = size;
  axis.output_step = output.step.*step;
  axis.tap_step = tap.step.*step;
  axis.number = to_int(output.number);
  axis.image_stride = output.step.stride / axis.output_step;
  axis.filter_stride = weight.step.stride;
  return axis;
}

std::size_t SlidingForm::result_bytes() const {
  return static_cast<std::size_t>(form.rows() * form.columns() * form.groups * size_of(form.d.type));
}

double SlidingForm::products() const {
  return static_cast<double>(form.rows()) * static_cast<double>(form.columns()) *
         static_cast<double>(form.groups) * static_cast<double>(form.depth());
}

std::vector<SlidingForm> sliding_forms(ConvolutionProblem const& problem, ConvolutionAlgorithm algorithm) {
  std::vector<ConvolutionForm> forms = forms_of(problem);
  unify(forms);
  std::vector<SlidingForm> list;
  for (ConvolutionForm const& form : forms) {
    list.push_back(sliding_form(form));
    if (algorithm == ConvolutionAlgorithm::depthwise) list.back().form = with_all_channels(form);
  }
  return list;
}

void narrow_runs(ConvolutionForm& form, int filters) {
  auto const narrow = [filters](int& width) {
    while (filters % width != 0) width /= 2;
  };
  narrow(form.d.width);
  for (DigitForm& operand : form.operands) narrow(operand.width);
  for (DigitForm& store : form.stores) narrow(store.width);
}

SlidingArguments sliding_arguments(SlidingForm const& sliding, void const* image, void const* filter) {
  SlidingArguments window = sliding.window;
  window.image = moved(image, sliding.image_base, sliding.form.a.type);
  window.filter = moved(filter, sliding.filter_base, sliding.form.b.type);
  if (!sliding.form.image_is_a) {
    window.image = moved(image, sliding.image_base, sliding.form.b.type);
    window.filter = moved(filter, sliding.filter_base, sliding.form.a.type);
  }
  return window;
}

}  // namespace cosmati::plan
