// Derives the axes of an image from the index digits of a form.
#include "src/plan/conv/sliding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/kernel_parts.h"
#include "src/plan/conv/launch.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

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
  window.rows = window_axis(output('p'), tap('r'), weight('r'), &IndexStride::down, all.top, all.height);
  window.columns = window_axis(output('q'), tap('s'), weight('s'), &IndexStride::right, all.left, all.width);
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

// True if adjacent columns of an image are closer in memory than channels of adjacent groups.
bool columns_are_nearer(SlidingArguments const& window) {
  return window.columns.size > 1 && window.image_group != 0 &&
         std::abs(window.columns.image_stride) < std::abs(window.image_group);
}

}  // namespace

FoundDigit find_digit(char letter, ProductIndex const& index, IndexStrides const& steps) {
  IndexStride const each[3] = {steps.first, steps.middle, steps.last};
  Index number = 1;
  for (std::size_t i = 3; i-- > 0; number *= index[i].extent)
    if (index[i].letter == letter) return {index[i].extent, each[i], number};
  return {};
}

WindowAxis window_axis(FoundDigit const& output, FoundDigit const& tap, FoundDigit const& weight,
                       int IndexStride::*step, int origin, int size) {
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
  bool const depthwise = algorithm == ConvolutionAlgorithm::depthwise;
  std::vector<ConvolutionForm> forms = forms_of(problem);
  std::vector<SlidingForm> list;
  for (ConvolutionForm& form : forms) {
    list.push_back(sliding_form(form));
    if (!depthwise) continue;
    if (!form.swapped && columns_are_nearer(list.back().window)) form = exchanged(form);
    form = with_all_channels(form);
  }
  unify(forms);
  for (std::size_t i = 0; i < forms.size(); ++i) list[i].form = forms[i];
  return list;
}

SlidingLaunches sliding_launches(Problem const& problem, ConvolutionAlgorithm algorithm) {
  std::vector<SlidingForm> forms = sliding_forms(problem, algorithm);
  auto const is_empty = [](SlidingForm const& sliding) {
    return sliding.form.rows() == 0 || sliding.form.columns() == 0;
  };
  SlidingForm const first = forms.front();
  forms.erase(std::remove_if(forms.begin(), forms.end(), is_empty), forms.end());
  if (forms.empty()) return {{first}};
  std::stable_sort(forms.begin(), forms.end(), [](SlidingForm const& x, SlidingForm const& y) {
    return x.form.depth() > y.form.depth();
  });
  int const maximum = with_epilogue_arguments(problem, [&]<class Epilogue>(Epilogue const&) {
    return algorithm == ConvolutionAlgorithm::depthwise
               ? max_phases_of<DepthwiseParameters<Epilogue, DigitArguments>>
               : max_phases_of<DirectTiledParameters<Epilogue, DigitArguments>>;
  });
  std::size_t const count =
      (forms.size() + static_cast<std::size_t>(maximum) - 1) / static_cast<std::size_t>(maximum);
  SlidingLaunches launches(count);
  for (std::size_t i = 0; i < forms.size(); ++i) launches[i * count / forms.size()].push_back(forms[i]);
  return launches;
}

bool take_turns(SlidingLaunches const& launches) { return launches.front().size() > 1; }

std::string launches_text(SlidingLaunches const& launches, Index times) {
  Index const count = static_cast<Index>(launches.size()) * times;
  std::string text = fmt::format("{} launch{}", count, count == 1 ? "" : "es");
  std::size_t phases = 0;
  for (auto const& launch : launches) phases += launch.size();
  if (phases > 1) text += fmt::format(" for {} phases", phases);
  return text;
}

std::string taps_text(KnownAxis const& axis) {
  if (axis.taps == 0) return "any taps";
  return fmt::format("{} taps {}in registers", axis.taps, axis.uneven ? "or one fewer " : "");
}

KnownAxis known_axis(std::vector<SlidingForm> const& forms, WindowAxis SlidingArguments::*axis) {
  KnownAxis known;
  WindowAxis const& first = forms.front().window.*axis;
  known.output_step = first.output_step;
  known.tap_step = first.tap_step;
  for (SlidingForm const& sliding : forms) known.taps = std::max(known.taps, (sliding.window.*axis).taps);
  for (SlidingForm const& sliding : forms) {
    WindowAxis const& own = sliding.window.*axis;
    known.uneven = known.uneven || own.taps != known.taps;
    if (own.output_step != first.output_step || own.tap_step != first.tap_step ||
        (own.taps != 0 && own.taps < known.taps - 1))
      return {};
  }
  return known;
}

std::vector<Index> blocks_along_x(std::vector<SlidingForm> const& launch, ConvolutionRecipe const& recipe) {
  std::vector<Index> blocks;
  for (SlidingForm const& sliding : launch)
    blocks.push_back(recipe.algorithm == ConvolutionAlgorithm::depthwise
                         ? depthwise_grid(sliding, std::get<DepthwiseRecipe>(recipe.own)).x
                         : tile_grid(sliding, std::get<DirectTiledRecipe>(recipe.own)).x);
  return blocks;
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
