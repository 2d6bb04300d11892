// Describes filter gradients of few channels for wgrad_direct: planes in shared memory, launches, the offer.
#include "src/plan/conv/filter/wgrad_direct.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/filter/wgrad_direct_search.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr Index sum_lanes = 32;  // WgradDirectTraits

// The smallest pitch of at least `values` that differs from `distance` by a multiple of the banks.
Index pitch_of(Index values, Index distance) {
  constexpr Index banks = 32;
  return values + ((distance - values) % banks + banks) % banks;
}

PlaneSchedule image_planes(SlidingArguments const& w, WgradDirectRecipe const& recipe) {
  PlaneSchedule planes;
  planes.rows = to_int(halo(w.rows, recipe.rows));
  planes.columns = to_int(halo(w.columns, w.columns.outputs));
  // Adjacent lanes process adjacent rows of taps, then channels: at equal distances modulo the banks, odd
  // ones if taps are adjacent.
  planes.row_pitch = planes.columns | 1;
  planes.channel_pitch = to_int(pitch_of(Index{planes.rows} * planes.row_pitch,
                                         Index{w.rows.taps} * w.rows.tap_step * planes.row_pitch));
  planes.image_pitch = to_int(Index{w.inputs} * planes.channel_pitch);
  planes.channels_last = w.image_input == 1 && w.inputs > 1;
  planes.log2_lanes = log2_lanes_of(
      Index{std::clamp(w.columns.size, 1, planes.columns)} * (planes.channels_last ? w.inputs : 1), 3, 5);
  planes.fill = reaches_outside(w.rows) || reaches_outside(w.columns);
  planes.loaded_rows = Divisor(std::clamp(w.rows.size, 1, planes.rows));
  planes.channels = Divisor(std::max(1, w.inputs));
  return planes;
}

PlaneSchedule gradient_planes(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe) {
  auto const& p = gradient.parameters;
  Index const vector = vector_of_run(recipe.run, size_of(gradient.form.sum));
  PlaneSchedule planes;
  planes.rows = recipe.rows;
  planes.columns = p.window.columns.outputs;
  planes.row_pitch = to_int(ceiling_divide(planes.columns, vector) * vector);
  // Adjacent lanes read vectors of adjacent filters, which are adjacent modulo the banks; where lanes store
  // single channels, four of them meet in a bank.
  planes.channel_pitch = to_int(pitch_of(Index{planes.rows} * planes.row_pitch, vector));
  planes.image_pitch = to_int(Index{recipe.filters} * planes.channel_pitch);
  planes.channels_last = p.gradient_channel == 1 && p.window.outputs > 1;
  planes.log2_lanes =
      log2_lanes_of(Index{planes.columns} * (planes.channels_last ? recipe.filters : 1), 3, 5);
  planes.loaded_rows = Divisor(planes.rows);
  planes.channels = Divisor(recipe.filters);
  WindowForm const& dy = gradient.form.image_is_a ? gradient.form.b : gradient.form.a;
  planes.dense = p.gradient_column == 1 && p.gradient_row == planes.columns &&
                 dy.alignment % (vector * size_of(dy.type)) == 0;
  for (Index const stride : {p.gradient_row, p.gradient_image, p.gradient_channel, p.gradient_group, dy.base})
    planes.dense = planes.dense && stride % vector == 0;
  return planes;
}

Index gradient_at(PlaneSchedule const& image, WgradDirectRecipe const& recipe) {
  constexpr Index run = 4, last_run = 4;  // filling the preceding planes may write past their end
  return ceiling_divide(Index{recipe.images} * image.image_pitch + last_run, run) * run;
}
}  // namespace

BothPlanes::BothPlanes(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe)
    : x(image_planes(gradient.parameters.window, recipe)), dy(gradient_planes(gradient, recipe)) {}

Index shared_values(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe,
                    BothPlanes const& both) {
  SlidingArguments const& w = gradient.parameters.window;
  Index const planes = gradient_at(both.x, recipe) + Index{recipe.images} * both.dy.image_pitch;
  Index const slots = slots_of(w, recipe), threads = threads_of(recipe);
  Index const sums = threads / slots * slots * recipe.thread_filters * recipe.columns.taps + threads;
  return std::max(planes, sums);
}

WgradDirectForm wgrad_direct_form(Problem const& problem) {
  WgradDirectForm gradient;
  ConvolutionForm const& form = gradient.form = forms_of(problem).front();
  describe_gradient(gradient, form);
  auto& p = gradient.parameters;
  FoundDigit const channel = tap_digit(form, 'c');
  p.window.inputs = to_int(channel.extent);
  p.window.image_input = channel.step.stride;
  p.gradient_group = (form.image_is_a ? form.b : form.a).arguments.batch_stride;
  p.channel_number = to_int(channel.number);
  return gradient;
}

WgradTileSchedule wgrad_direct_schedule(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe,
                                        bool bias) {
  SlidingArguments const& w = gradient.parameters.window;
  auto const divisor = [](Index value) { return Divisor(std::max<Index>(1, value)); };
  Index const threads = threads_of(recipe), slots = slots_of(w, recipe);
  WgradTileSchedule schedule;
  schedule.groups = gradient.form.groups;
  BothPlanes const planes(gradient, recipe);
  schedule.image = planes.x, schedule.gradient = planes.dy;
  schedule.gradient_at = to_int(gradient_at(planes.x, recipe));
  schedule.images = recipe.images;
  schedule.rows = recipe.rows;
  schedule.passes = to_int(passes_of(w, recipe));
  schedule.parts = to_int(threads / slots);
  schedule.segment = recipe.segment;
  schedule.bias_parts = to_int(threads / recipe.filters);
  schedule.filters = recipe.filters;
  schedule.filter_groups = recipe.filters / recipe.thread_filters;
  schedule.weights = to_int(weights_of(w, bias));
  schedule.tiles_down = divisor(ceiling_divide(w.rows.outputs, recipe.rows));
  schedule.tile_rows = divisor(recipe.rows);
  schedule.segments = divisor(ceiling_divide(w.columns.outputs, recipe.segment));
  schedule.slots = divisor(slots);
  schedule.channels = divisor(w.inputs);
  schedule.taps_down = divisor(w.rows.taps);
  schedule.block_filters = divisor(recipe.filters);
  schedule.taps = divisor(taps_of(w));
  schedule.taps_across = divisor(w.columns.taps);
  return schedule;
}

SlidingGrid wgrad_direct_grid(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe) {
  return {recipe.blocks, ceiling_divide(gradient.parameters.window.outputs, recipe.filters),
          gradient.form.groups};
}
SlidingGrid wgrad_direct_sum_grid(WgradDirectForm const& gradient, WgradTileSchedule const& schedule) {
  return {ceiling_divide(schedule.weights, sum_lanes), 1, gradient.form.groups};
}

std::string traits_of(WgradDirectPolicy const& policy, KernelTypes const& types) {
  return fmt::format(
      "WgradDirectTraits<WgradDirectPolicy{{.threads = {}, .run = {}, .filters = {}, .swapped = {},\n"
      ".taps = {}, .output_step = {}, .tap_step = {}}},\n{}>",
      policy.threads, policy.run, policy.filters, policy.swapped, policy.taps, policy.output_step,
      policy.tap_step, types.print());
}

program::Program wgrad_direct_program(Plan<Problem> const& plan) {
  WgradDirectRecipe const& recipe = std::get<WgradDirectRecipe>(plan.recipe.own);
  bool const bias = makes_bias_gradient(plan.problem, plan.recipe);
  Index const bias_stride = bias ? plan.problem.db.layout.stride[0] : 0;
  ConvolutionProgram made(plan);
  WgradDirectForm gradient = wgrad_direct_form(plan.problem);
  ConvolutionForm const& form = gradient.form = made.in_kernel(gradient.form);
  KernelTypes const types = made.types_of(form);
  gradient.image = types.image, gradient.gradient = types.filter;
  SlidingGrid const grid = wgrad_direct_grid(gradient, recipe),
                    parts_grid =
                        wgrad_direct_sum_grid(gradient, wgrad_direct_schedule(gradient, recipe, bias));
  constexpr unsigned sum_threads = 512;  // WgradDirectTraits
  unsigned const sum_bytes = sum_threads * static_cast<unsigned>(size_of(form.sum));
  WgradDirectPolicy const policy{.threads = 1 << recipe.log2_threads,
                                 .run = recipe.run,
                                 .filters = recipe.thread_filters,
                                 .swapped = form.image_is_a,
                                 .taps = recipe.columns.taps,
                                 .output_step = recipe.columns.output_step,
                                 .tap_step = recipe.columns.tap_step};
  program::KernelSpec kernel{.headers = {"conv/wgrad_direct.h"},
                             .entry = "wgrad_direct_kernel",
                             .traits = traits_of(policy, types),
                             .asserted = {{"sizeof(ComposedTraits::SumStorage)", sum_bytes}},
                             .threads = 1u << recipe.log2_threads,
                             .shared_bytes = static_cast<unsigned>(recipe.shared_bytes)};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = WgradDirectParameters<Epilogue, Destination>;
    std::size_t const sums = made.add_kernel<Parameters>(kernel, form);
    kernel.entry = "wgrad_direct_sum_kernel";
    kernel.threads = sum_threads;
    kernel.shared_bytes = sum_bytes;
    std::size_t const parts = made.add_kernel<Parameters>(kernel, form);
    if (form.rows() == 0 || form.columns() == 0) return;
    auto const fill = [gradient, recipe, bias, bias_stride, x = made.image, dy = made.filter](
                          program::Run const& run, Parameters& to) {
      fill_wgrad_direct(to, gradient, recipe, x.of(run), dy.of(run), run.workspace,
                        bias ? run.tensors[3] : nullptr, bias_stride);
      fill_destination(to.d, gradient.form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, gradient.form, run);
    };
    made.launch<Parameters>(sums, {grid.x, grid.y, grid.z}, fill);
    made.launch<Parameters>(parts, {parts_grid.x, parts_grid.y, parts_grid.z}, fill);
  });
  return std::move(made).finish();
}

namespace {

constexpr int max_threads = 512;

// Returns why there is no kernel for this form; empty if there is one.
std::string wgrad_direct_violation(WgradDirectForm const& gradient, KnownAxis const& columns, bool emulated) {
  constexpr int max_taps = 31;
  constexpr Index max_groups = 65535;
  if (std::string sentence = extent_violation({gradient.form}); !sentence.empty()) return sentence;
  SlidingArguments const& w = gradient.parameters.window;
  if (w.inputs == 0 || w.outputs == 0) return "the filters have no elements";
  bool const in_catalogue =
      (columns.taps == 3 || columns.taps == 1) && columns.output_step <= 2 && columns.tap_step == 1;
  if (emulated ? !in_catalogue : columns.taps > max_taps)
    return fmt::format("filter rows of {} taps with output step {} and tap step {}; {}", columns.taps,
                       columns.output_step, columns.tap_step,
                       emulated ? "the emulator supports 1 or 3 taps and steps of at most 2 and 1"
                                : fmt::format("at most {} taps", max_taps));
  int const threads = emulated ? emulated_filter_threads : max_threads;
  if (Index{w.inputs} * w.rows.taps > threads)
    return fmt::format("{} channels of {} rows of taps; a block has at most {} threads for them", w.inputs,
                       w.rows.taps, threads);
  if (gradient.form.groups > max_groups)
    return fmt::format("{} groups; a grid has at most {}", gradient.form.groups, max_groups);
  return {};
}

}  // namespace

Offer<Problem> wgrad_direct(Problem const& problem, Device const& device) {
  Offer<Problem> offer;
  WgradDirectForm const gradient = wgrad_direct_form(problem);
  SlidingArguments const& w = gradient.parameters.window;
  KnownAxis const columns{w.columns.taps, w.columns.output_step, w.columns.tap_step};
  bool const emulated = device.backend == Backend::emulator;
  offer.refusal = wgrad_direct_violation(gradient, columns, emulated);
  if (!offer.refusal.empty()) return offer;
  FoundRecipe const found = find_wgrad_direct_recipe(gradient, columns, device);
  WgradDirectRecipe const& chosen = found.recipe;
  if (chosen.shared_bytes == 0) {
    offer.refusal = fmt::format(
        "the image pixels of one row of outputs, {} columns of {} channels with {}x{} taps, do not fit into "
        "the {} bytes of shared memory of a block of {}",
        w.columns.size, w.inputs, w.rows.taps, w.columns.taps, device.gpu.shared_bytes_per_block,
        device.gpu.name);
    return offer;
  }
  ConvolutionRecipe& recipe = offer.recipe;
  recipe.algorithm = ConvolutionAlgorithm::direct_tiled;
  recipe.product = product_recipe(gradient.form);
  recipe.own = chosen;
  Index const weights = weights_of(w, makes_bias_gradient(problem, recipe));
  recipe.product.partial_bytes = static_cast<std::size_t>(
      chosen.blocks * std::max<Index>(1, gradient.form.groups) * weights * size_of(gradient.form.sum));
  offer.workspace_bytes = emulator::with_operands(recipe.product.partial_bytes,
                                                  emulated ? emulator::widening_bytes(problem, recipe) : 0);
  offer.predicted_seconds = recipe.product.predicted_seconds = found.seconds;
  offer.text = fmt::format(
      "{} images of {} rows of {} filters at a time, thread {}x{}x{} filters by outputs by taps, {} threads, "
      "{} bytes of shared memory, sums of {} blocks added in a fixed order",
      chosen.images, chosen.rows, chosen.filters, chosen.thread_filters, chosen.run, chosen.columns.taps,
      threads_of(chosen), chosen.shared_bytes, chosen.blocks);
  return offer;
}

}  // namespace cosmati::plan
