// The launches of Winograd's convolution.
#include "src/plan/conv/winograd/winograd_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "src/plan/conv/winograd/winograd.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

char const* name_of(WinogradRun run) {
  switch (run) {
    case WinogradRun::channels: return "channels";
    case WinogradRun::columns: return "columns";
    case WinogradRun::pixel: break;
  }
  return "pixel";
}

program::Workspace workspace_of(WinogradRecipe const& recipe) {
  program::Workspace workspace;
  workspace.add("products", recipe.filter);
  workspace.add("filter, transformed", recipe.filter, recipe.image - recipe.filter);
  workspace.add("image, transformed", recipe.image, recipe.sums - recipe.image);
  workspace.add("sums", recipe.sums, recipe.end - recipe.sums);
  return workspace;
}

program::KernelSpec transform(std::string entry, std::string traits, char const* label, bool is_composed) {
  return {.headers = {"conv/winograd/winograd.h"},
          .entry = std::move(entry),
          .traits = std::move(traits),
          .is_composed = is_composed,
          .threads = winograd_threads,
          .label = label};
}

}  // namespace

std::string WinogradFilterTraits::print() const {
  return fmt::format(
      "cosmati::WinogradFilterTraits<cosmati::WinogradFilterPolicy{{.tile = {}, .taps = {}}}, {}, {}>",
      policy.tile, policy.taps, from, to);
}

std::string WinogradImageTraits::print() const {
  return fmt::format(
      "cosmati::WinogradImageTraits<cosmati::WinogradImagePolicy{{.tile = {}, .taps = {}, .channels_last = {}, "
      ".channels = {}, .together = {}}}, {}, {}>",
      policy.tile, policy.taps, policy.channels_last, policy.channels, policy.together, from, to);
}

std::string WinogradResultTraits::print() const {
  return fmt::format(
      "WinogradResultTraits<WinogradResultPolicy{{.tile = {}, .taps = {}, .run = WinogradRun::{}}},\n{},\n{}>",
      policy.tile, policy.taps, name_of(policy.run), epilogue, destination);
}

program::Program winograd_program(Plan<Problem> const& plan) {
  struct Shape {
    SlidingForm form;
    WinogradRecipe recipe;
  };
  auto const shape = std::make_shared<Shape const>(
      Shape{winograd_form(plan.problem), std::get<WinogradRecipe>(plan.recipe.own)});
  WinogradRecipe const& recipe = shape->recipe;
  ConvolutionForm const& form = shape->form.form;
  ConvolutionProgram made(plan, workspace_of(recipe));
  bool const emulated = made.is_emulated();
  auto const elements = [emulated](DataType type) {
    return emulated ? std::string("HostElements")
                    : fmt::format("cosmati::WinogradElements<cosmati::{}>", cosmati::name_of(type));
  };
  std::string const to = elements(recipe.type);
  int const channels = winograd_channels(recipe), image_width = recipe.image_channels_last ? channels : 1,
            result_width = recipe.run == WinogradRun::channels ? channels : 1;
  int const parts = winograd_parts(shape->form, recipe);
  WinogradFilterTraits const of_filter{
      {.tile = recipe.tile, .taps = recipe.taps}, elements((form.image_is_a ? form.b : form.a).type), to};
  WinogradImageTraits const of_image{
      {.tile = recipe.tile,
       .taps = recipe.taps,
       .channels_last = recipe.image_channels_last,
       .channels = image_width,
       .together = recipe.image_together || (emulated && !recipe.image_channels_last)},
      elements(form.image().type),
      to};
  std::size_t const filter_kernel = made.add_pass(
                        transform("winograd_filter_kernel", of_filter.print(), "filters transformed", false)),
                    image_kernel = made.add_pass(
                        transform("winograd_image_kernel", of_image.print(), "image transformed", false)),
                    product = made.add_product(winograd_product(plan));
  KernelTypes const types = made.types_of(form);
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Result = WinogradResultParameters<Epilogue, Destination>;
    std::size_t const result_kernel = made.add_kernel<Result>(
        transform("winograd_result_kernel",
                  WinogradResultTraits{{.tile = recipe.tile, .taps = recipe.taps, .run = recipe.run},
                                       types.epilogue,
                                       types.destination}
                      .print(),
                  "sums transformed", true),
        form);
    for (int part = 0; part < parts; ++part)
      made.launch<WinogradFilterParameters>(
          filter_kernel,
          {winograd_blocks(filter_parameters(shape->form, recipe, nullptr, part, nullptr).to, 1)},
          [shape, part, from = made.filter](program::Run const& run, WinogradFilterParameters& parameters) {
            parameters = filter_parameters(shape->form, shape->recipe, from.of(run), part, run.workspace);
          });
    for (Index first = 0; first < shape->form.window.images; first += recipe.slice) {
      Index const count = std::min(recipe.slice, shape->form.window.images - first);
      for (int part = 0; part < parts; ++part)
        made.launch<WinogradImageParameters>(
            image_kernel,
            {winograd_blocks(image_parameters(shape->form, recipe, nullptr, first, count, part, nullptr).to,
                             image_width)},
            [shape, first, count, part, from = made.image](program::Run const& run,
                                                           WinogradImageParameters& parameters) {
              parameters = image_parameters(shape->form, shape->recipe, from.of(run), first, count, part,
                                            run.workspace);
            });
      // Computes a full slice; results past its images are not read.
      made.call(program::ProductCall{product, recipe.image, recipe.filter, recipe.sums});
      made.launch<Result>(
          result_kernel, {winograd_blocks(sums_matrix(shape->form, recipe, count, nullptr), result_width)},
          [shape, first, count](program::Run const& run, Result& parameters) {
            fill_winograd_result(parameters, shape->form, shape->recipe, first, count, run.workspace);
            fill_destination(parameters.d, shape->form.form.d, ConvolutionProgram::result(run));
            fill_epilogue(parameters.epilogue, shape->form.form, run);
          });
    }
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
