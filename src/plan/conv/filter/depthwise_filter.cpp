// Derives rows, columns and parts of a depthwise filter gradient from its index digits.
#include "src/plan/conv/filter/depthwise_filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int depthwise_filter_threads = 128;  // DepthwiseFilterTraits

Index lanes_of(DepthwiseFilterRecipe const& recipe) { return Index{1} << recipe.log2_lanes; }
Index channels_of_block(DepthwiseFilterRecipe const& recipe) {
  return recipe.channels_last ? lanes_of(recipe) * recipe.vector : 1;
}
Index channels_of(DepthwiseFilterForm const& gradient) {
  return (gradient.form.image_is_a ? gradient.form.n : gradient.form.m)[2].extent;
}
Index taps_of(DepthwiseFilterForm const& gradient) {
  SlidingArguments const& window = gradient.parameters.window;
  return Index{window.rows.taps} * window.columns.taps;
}
Index rows_of(DepthwiseFilterForm const& gradient) {
  SlidingArguments const& window = gradient.parameters.window;
  return Index{window.images} * window.rows.outputs;
}

int vector_of(DepthwiseFilterForm const& gradient, int taps, bool emulated) {
  auto const& p = gradient.parameters;
  if (p.window.outputs != 1 || gradient.image != gradient.gradient) return 1;
  int const size = size_of(gradient.image);
  auto const fits = [&](int vector) {
    bool all = channels_of(gradient) % vector == 0 && gradient.form.a.alignment % (vector * size) == 0 &&
               gradient.form.b.alignment % (vector * size) == 0;
    for (Index const stride :
         {p.window.image_stride, p.window.rows.image_stride, p.window.columns.image_stride, p.gradient_image,
          p.gradient_row, p.gradient_column, gradient.image_base})
      all = all && stride % vector == 0;
    return all;
  };
  if (emulated) return taps == 3 && gradient.form.sum == DataType::f32 && fits(4) ? 4 : 1;
  int vector = 1;
  while (2 * vector * size <= 16 && fits(2 * vector)) vector *= 2;
  return vector;
}

}  // namespace

DepthwiseFilterForm depthwise_filter_form(Problem const& problem) {
  ConvolutionForm const form = forms_of(problem).front();
  DepthwiseFilterForm gradient;
  gradient.form = with_all_channels(form);
  describe_gradient(gradient, form);
  return gradient;
}

DepthwiseFilterSchedule depthwise_filter_schedule(DepthwiseFilterForm const& gradient,
                                                  DepthwiseFilterRecipe const& recipe) {
  SlidingArguments const& window = gradient.parameters.window;
  auto const divisor = [](Index value) { return Divisor(std::max<Index>(1, value)); };
  DepthwiseFilterSchedule schedule;
  schedule.log2_lanes = recipe.log2_lanes;
  schedule.channels = static_cast<int>(channels_of(gradient));
  schedule.rows = static_cast<int>(rows_of(gradient));
  schedule.rows_of_part = static_cast<int>(ceiling_divide(rows_of(gradient), recipe.parts));
  schedule.parts = recipe.parts;
  schedule.channel_tiles = divisor(ceiling_divide(channels_of(gradient), channels_of_block(recipe)));
  schedule.tap_groups = divisor(taps_of(gradient) / recipe.taps);
  schedule.taps_across = divisor(window.columns.taps / recipe.taps);
  schedule.image_rows = divisor(window.rows.outputs);
  schedule.outputs = divisor(window.outputs);
  return schedule;
}

std::string traits_of(DepthwiseFilterPolicy const& policy, KernelTypes const& types) {
  return fmt::format(
      "DepthwiseFilterTraits<DepthwiseFilterPolicy{{\n"
      ".channels_last = {}, .vector = {}, .taps = {}, .swapped = {}}},\n{}>",
      policy.channels_last, policy.vector, policy.taps, policy.swapped, types.print());
}

program::Program depthwise_filter_program(Plan<Problem> const& plan) {
  DepthwiseFilterRecipe const& recipe = std::get<DepthwiseFilterRecipe>(plan.recipe.own);
  ConvolutionProgram made(plan);
  DepthwiseFilterForm gradient = depthwise_filter_form(plan.problem);
  ConvolutionForm const& form = gradient.form = made.in_kernel(gradient.form);
  KernelTypes const types = made.types_of(form);
  gradient.image = types.image, gradient.gradient = types.filter;
  DepthwiseFilterSchedule const schedule = depthwise_filter_schedule(gradient, recipe);
  auto const shared = static_cast<unsigned>(recipe.shared_bytes);
  program::KernelSpec kernel{.headers = {"conv/depthwise_filter.h"},
                             .entry = "depthwise_filter_kernel",
                             .traits = traits_of({.channels_last = recipe.channels_last,
                                                  .vector = recipe.vector,
                                                  .taps = recipe.taps,
                                                  .swapped = form.image_is_a},
                                                 types),
                             .asserted = {{"ComposedTraits::threads", depthwise_filter_threads},
                                          {"sizeof(ComposedTraits::SharedStorage)", shared}},
                             .threads = depthwise_filter_threads,
                             .shared_bytes = shared};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = DepthwiseFilterParameters<Epilogue, Destination>;
    std::size_t const sums = made.add_kernel<Parameters>(kernel, form);
    kernel.entry = "depthwise_filter_sum_kernel";
    kernel.shared_bytes = 0;
    std::size_t const parts = made.add_kernel<Parameters>(kernel, form);
    if (form.rows() == 0 || form.columns() == 0) return;
    auto const fill = [gradient, schedule, x = made.image, dy = made.filter](program::Run const& run,
                                                                             Parameters& to) {
      auto const& own = gradient.parameters;
      to.window = own.window;
      to.window.image = moved(x.of(run), gradient.image_base, gradient.image);
      to.gradient = moved(dy.of(run), gradient.gradient_base, gradient.gradient);
      to.gradient_image = own.gradient_image;
      to.gradient_channel = own.gradient_channel;
      to.gradient_row = own.gradient_row;
      to.gradient_column = own.gradient_column;
      to.partials = run.workspace;
      to.tap_row_number = own.tap_row_number;
      to.tap_column_number = own.tap_column_number;
      to.schedule = schedule;
      fill_destination(to.d, gradient.form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, gradient.form, run);
    };
    made.launch<Parameters>(
        sums, {Index{schedule.channel_tiles.divisor} * schedule.tap_groups.divisor * schedule.parts}, fill);
    made.launch<Parameters>(
        parts, {ceiling_divide(channels_of(gradient) * taps_of(gradient), depthwise_filter_threads)}, fill);
  });
  return std::move(made).finish();
}

Offer<Problem> depthwise_filter(Problem const& problem, Device const& device) {
  Offer<Problem> offer;
  DepthwiseFilterForm const gradient = depthwise_filter_form(problem);
  offer.refusal = extent_violation({gradient.form});
  if (!offer.refusal.empty()) return offer;
  auto const& p = gradient.parameters;
  ConvolutionRecipe& recipe = offer.recipe;
  recipe.algorithm = ConvolutionAlgorithm::depthwise;
  recipe.product = product_recipe(gradient.form);
  DepthwiseFilterRecipe& sliding = recipe.own.emplace<DepthwiseFilterRecipe>();
  bool const emulated = device.backend == Backend::emulator;
  constexpr int max_taps = 7;
  sliding.taps = p.window.columns.taps <= max_taps ? p.window.columns.taps : 1;
  sliding.channels_last = p.gradient_channel == 1 && p.window.image_group == 1;
  sliding.vector = sliding.channels_last ? vector_of(gradient, sliding.taps, emulated) : 1;
  if (emulated && sliding.vector == 1) sliding.taps = 1;  // for the emulator's catalogue
  sliding.log2_lanes =
      log2_lanes_of(sliding.channels_last ? channels_of(gradient) / sliding.vector : p.window.columns.outputs,
                    3, sliding.channels_last ? 5 : 7);
  int const sum_bytes = size_of(recipe.product.sum);
  sliding.shared_bytes = sliding.taps * sliding.vector * depthwise_filter_threads * sum_bytes;

  // Enough parts for eight blocks per multiprocessor, if the parts have enough rows to keep all threads busy.
  Index const blocks =
      ceiling_divide(channels_of(gradient), channels_of_block(sliding)) * taps_of(gradient) / sliding.taps;
  Index const rows_at_a_time = depthwise_filter_threads / lanes_of(sliding);
  Index const wanted = ceiling_divide(8 * Index{device.gpu.multiprocessors}, std::max<Index>(1, blocks));
  Index const parts = std::clamp<Index>(std::min(wanted, rows_of(gradient) / (2 * rows_at_a_time)), 1, 1024);
  sliding.parts = static_cast<int>(parts);
  recipe.product.partial_bytes =
      static_cast<std::size_t>(parts * channels_of(gradient) * taps_of(gradient) * sum_bytes);
  if (blocks * parts > max_int) {
    offer.refusal = fmt::format("{} blocks; a grid has at most 2147483647", blocks * parts);
    return offer;
  }
  offer.workspace_bytes = emulator::with_operands(recipe.product.partial_bytes,
                                                  emulated ? emulator::widening_bytes(problem, recipe) : 0);

  // x and dy are read from memory once, and from the L2 cache once per group of taps.
  Gpu const& gpu = device.gpu;
  double const once = static_cast<double>(problem.x.bytes() + problem.y.bytes());
  double const groups = static_cast<double>(taps_of(gradient) / sliding.taps);
  double const l2_rate = 64.0 * gpu.multiprocessors * gpu.clock_hertz * 0.6;
  // Measured on an H200: if channels are not contiguous, 5x5 taps take 50 times as long as the multiply-adds
  // alone.
  double const share_of_rate = sliding.vector > 1 ? 0.15 : 0.02;
  double const clocks =
      static_cast<double>(gradient.form.rows()) * static_cast<double>(gradient.form.columns()) *
      static_cast<double>(gradient.form.depth()) / (share_of_rate * gpu.fma_f32 * gpu.multiprocessors);
  offer.predicted_seconds = 6e-6 + std::max({once / (0.7 * gpu.memory_bytes_per_second),
                                             once * groups / l2_rate, clocks / gpu.clock_hertz});
  recipe.product.predicted_seconds = offer.predicted_seconds;
  offer.text = fmt::format(
      "{} taps by {} channels per thread, {} lanes of {}, {} partial sums added in a fixed order",
      sliding.taps, sliding.vector, lanes_of(sliding), sliding.channels_last ? "channels" : "columns", parts);
  return offer;
}

}  // namespace cosmati::plan
