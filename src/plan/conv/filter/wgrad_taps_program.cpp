// The launches of wgrad_taps, and its tensor maps.
#include <fmt/format.h>

#include <algorithm>

#include "src/ops/number_types.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/filter/wgrad_taps.h"
#include "src/plan/conv/windows/line_boxes.h"
#include "src/plan/gemm/program/tensor_maps.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

std::string print_axis(WgradTapsAxis const& axis) {
  return fmt::format("WgradTapsAxis{{{}, {}, {}}}", axis.taps, axis.stride, axis.dilation);
}

}  // namespace

std::string WgradTapsTraits::print() const {
  return fmt::format("WgradTapsTraits<{}, WgradTapsShape{{{}, {}, {}, {}, {}, {}, {}}}>", name_of(type),
                     print_axis(shape.rows), print_axis(shape.columns), shape.across, shape.down,
                     shape.images, shape.stages, shape.has_odd_rows);
}

std::string WgradTapsSumTraits::print() const {
  return fmt::format(
      "WgradTapsSumTraits<WgradTapsSumPolicy{{.slices = {}, .in_runs = {}, .swapped = {}}},\n{},\n{}>",
      policy.slices, policy.in_runs, policy.swapped, epilogue, destination);
}

program::Program wgrad_taps_program(Plan<Problem> const& plan) {
  auto const& recipe = std::get<WgradTapsRecipe>(plan.recipe.own);
  Problem const& problem = plan.problem;
  WgradTapsShape const& shape = recipe.shape;
  program::Workspace workspace;
  workspace.add("partial sums", plan.recipe.product_workspace());
  ConvolutionProgram made(plan, std::move(workspace));
  ConvolutionForm const form = forms_of(problem).front();
  WgradTapsParameters const parameters = wgrad_taps_parameters(problem, shape, recipe.parts);

  std::size_t const main =
      made.add_pass({.headers = {"conv/wgrad_taps.h"},
                     .entry = "wgrad_taps_kernel",
                     .traits = WgradTapsTraits{problem.x.type, shape}.print(),
                     .asserted = {{"sizeof(ComposedTraits::Params)", sizeof(WgradTapsParameters)},
                                  {"sizeof(ComposedTraits::SharedStorage)",
                                   static_cast<std::size_t>(shape.shared_bytes())}},
                     .starts_early = true,
                     .threads = static_cast<unsigned>(shape.threads()),
                     .shared_bytes = static_cast<unsigned>(shape.shared_bytes())});
  made.launch<WgradTapsParameters>(
      main, {wgrad_taps_tiles(parameters) * recipe.parts},
      [problem, shape, parameters](program::Run const& run, WgradTapsParameters& to) {
        to = parameters;
        to.gradient =
            run.encode(line_boxes(problem.y, run.tensors[1], 0, 1, shape.across, shape.down, shape.images));
        for (int phase = 0; phase < shape.phases(); ++phase)
          to.image[phase] = run.encode(line_boxes(problem.x, run.tensors[0], phase, shape.phases(),
                                                  shape.image_columns(), shape.image_rows(), shape.images));
        to.partials = reinterpret_cast<float*>(run.workspace);
      });

  bool const emulated = made.is_emulated();
  WgradTapsSumTraits const sum{
      {.slices = recipe.sum_slices, .in_runs = recipe.sum_in_runs, .swapped = form.image_is_a},
      emulated ? "HostEpilogue" : epilogue_text(form),
      emulated ? "HostDestination" : destination_text(form)};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = WgradTapsSumParameters<Epilogue, Destination>;
    constexpr int threads = 256, run = 4;  // WgradTapsSum
    constexpr unsigned shared = threads * run * sizeof(float);
    program::KernelSpec kernel{.headers = {"conv/wgrad_taps_sum.h"},
                               .entry = "wgrad_taps_sum_kernel",
                               .traits = sum.print(),
                               .asserted = {{"sizeof(ComposedTraits::Params)", sizeof(Parameters)},
                                            {"sizeof(ComposedTraits::SharedStorage)", shared}},
                               .starts_early = true,
                               .threads = threads,
                               .shared_bytes = shared};
    if (!emulated) kernel.declarations = function_text(problem, form);
    if (!form.identity) kernel.label = problem.epilogue.expression.text();
    Index const sums = wgrad_taps_sums(parameters, shape), runs = sums / run;
    made.launch<Parameters>(made.add_pass(std::move(kernel)), {runs * sum.policy.slices / threads},
                            [=, parts = recipe.parts](program::Run const& of, Parameters& to) {
                              to.partials = reinterpret_cast<float const*>(of.workspace);
                              to.parts = parts;
                              to.part_stride = sums;
                              to.runs_of_group = Divisor(shape.rows.taps * (wgrad_taps_channels / 16));
                              to.groups = Divisor(shape.columns.taps);
                              to.tiles = parameters.tiles;
                              to.filters = static_cast<int>(problem.w.extent(0));
                              to.taps_down = static_cast<int>(problem.w.extent(2));
                              to.taps_across = static_cast<int>(problem.w.extent(3));
                              to.channel_number = static_cast<int>(tap_digit(form, 'c').number);
                              to.tap_row_number = static_cast<int>(tap_digit(form, 'r').number);
                              to.tap_column_number = static_cast<int>(tap_digit(form, 's').number);
                              fill_destination(to.d, form.d, ConvolutionProgram::result(of));
                              fill_epilogue(to.epilogue, form, of);
                            });
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
