// Thread layout and predicted time of depthwise convolutions, which are bound by memory bandwidth.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/depthwise_filter.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int depthwise_threads = 128, depthwise_run = 4;  // DepthwiseTraits

WindowAxis const& along(SlidingForm const& sliding, DepthwiseRecipe const& recipe) {
  return recipe.channels_last ? sliding.window.columns : sliding.window.rows;
}
WindowAxis const& across(SlidingForm const& sliding, DepthwiseRecipe const& recipe) {
  return recipe.channels_last ? sliding.window.rows : sliding.window.columns;
}
Index channels_of(SlidingForm const& sliding) {
  return (sliding.form.image_is_a ? sliding.form.n : sliding.form.m)[2].extent;
}

// Makes taps and steps compile-time constants if the image elements that a thread keeps per tap of the other
// axis fit in registers.
KnownAxis compiled_in(std::vector<SlidingForm> const& forms, bool channels_last) {
  KnownAxis const known =
      known_axis(forms, channels_last ? &SlidingArguments::columns : &SlidingArguments::rows);
  constexpr int max_places = 16;
  bool const few =
      known.taps >= 1 && known.taps <= max_places && std::abs(known.tap_step) <= max_places &&
      known.output_step <= max_places &&
      known_window(known.taps, known.output_step, known.tap_step, depthwise_run).places <= max_places;
  return few ? known : KnownAxis{};
}

// True if the emulator has this kernel with compile-time taps.
bool in_catalogue(KnownAxis const& axis, DataType sum) {
  bool const forward = axis.taps == 3 && axis.tap_step == 1 && !axis.uneven;
  bool const phases = axis.taps == 2 && axis.tap_step == -1 && axis.uneven;
  return sum == DataType::f32 && axis.output_step == 1 && (forward || phases);
}

// Channels per access: at most 16 aligned bytes, and few enough for registers.
int vector_of(DepthwiseRecipe const& recipe, std::vector<SlidingForm> const& forms, bool emulated) {
  SlidingForm const& front = forms.front();
  WindowForm const& image = front.form.image();
  int const size = size_of(image.type);
  if (!recipe.channels_last || front.window.image_group != 1 || front.window.outputs != 1) return 1;
  constexpr int max_values = 80;
  int const kept =
      known_window(recipe.axis.taps, recipe.axis.output_step, recipe.axis.tap_step, depthwise_run).places;
  auto const fits = [&](int vector) {
    auto const whole = [vector](Index value) { return value % vector == 0; };
    bool all =
        image.alignment % (vector * size) == 0 && vector * kept <= max_values && whole(channels_of(front));
    for (SlidingForm const& sliding : forms) {
      SlidingArguments const& w = sliding.window;
      for (Index const stride : {w.image_stride, w.inputs > 1 ? w.image_input : 0, w.rows.image_stride,
                                 w.columns.image_stride, sliding.image_base})
        all = all && whole(stride);
    }
    return all;
  };
  if (emulated) return recipe.axis.taps > 0 && fits(4) ? 4 : 1;
  int vector = 1;
  while (2 * vector * size <= 16 && fits(2 * vector)) vector *= 2;
  return vector;
}

Index filter_bytes(SlidingForm const& sliding, DepthwiseRecipe const& recipe) {
  SlidingArguments const& w = sliding.window;
  Index const channels = recipe.channels_last ? Index{recipe.vector} << recipe.log2_lanes : 1;
  return channels * w.inputs * w.rows.taps * w.columns.taps * size_of(sliding.form.sum);
}

Index items_of(SlidingForm const& sliding, DepthwiseRecipe const& recipe) {
  WindowAxis const& other = across(sliding, recipe);
  return sliding.window.images * ceiling_divide(along(sliding, recipe).outputs, depthwise_run) *
         (recipe.channels_last ? other.outputs
                               : ceiling_divide(other.outputs, Index{1} << recipe.log2_lanes));
}
Index channel_tiles(SlidingForm const& sliding, DepthwiseRecipe const& recipe) {
  return ceiling_divide(channels_of(sliding),
                        recipe.channels_last ? Index{recipe.vector} << recipe.log2_lanes : 1);
}

std::string depthwise_violation(Problem const& problem, Device const& device, PlanOptions const& options) {
  std::string sentence = problem_violation(problem, device.backend);
  if (!sentence.empty()) return sentence;
  if (!options.policy.empty()) return options.policy.refusal();
  if (problem.x.extent(1) != problem.groups || problem.groups < 1)
    return fmt::format("{} channels in {} groups; each channel must form its own group", problem.x.extent(1),
                       problem.groups);
  if (problem.y.extent(1) == 0) return "the filter is empty";
  return {};
}

// Predicted time of one launch. Interleaved phases read the image from memory once. Issue slots count the
// instructions of a thread including waits, per run and per loaded image element, also for idle lanes. They
// are fitted to 3x3 taps with strides 1 and 2 and to 7x7 taps on an H200, and accurate within 25 % above 40
// us.
double predicted(std::vector<SlidingForm> const& forms, DepthwiseRecipe const& recipe, Gpu const& gpu) {
  double const slots_of_run = 383 + 8.5 * recipe.vector, slots_of_place = 10 + 10 * recipe.vector;
  constexpr double clocks_of_load = 400, blocks_at_once = 5;
  double image = 0, results = 0, slots = 0, blocks = 0, loads = 0;
  for (SlidingForm const& sliding : forms) {
    SlidingArguments const& w = sliding.window;
    WindowAxis const& axis = along(sliding, recipe);
    double const own =
        static_cast<double>(w.inputs) * across(sliding, recipe).taps;  // rows of elements per run
    loads = std::max(loads, own);
    image = std::max(image, static_cast<double>(w.images) *
                                static_cast<double>(channels_of(sliding) / w.outputs) * w.inputs *
                                w.rows.size * w.columns.size * size_of(sliding.form.image().type));
    results += static_cast<double>(sliding.result_bytes());
    double const rate = sliding.form.sum == DataType::f64 ? gpu.fma_f64 : gpu.fma_f32;
    double const products = axis.taps * depthwise_run * recipe.vector * gpu.fma_f32 / std::max(1.0, rate);
    bool const known = recipe.axis.taps > 0 && axis.taps > 0;
    int const places = known ? known_window(axis.taps, axis.output_step, axis.tap_step, depthwise_run).places
                             : depthwise_run * axis.taps;
    Index const runs = (items_of(sliding, recipe) * channel_tiles(sliding, recipe)) << recipe.log2_lanes;
    slots += static_cast<double>(runs) * (slots_of_run + own * (places * slots_of_place + products));
    blocks += static_cast<double>(depthwise_grid(sliding, recipe).x);
  }
  double const issue = slots / (gpu.fma_f32 * gpu.multiprocessors);
  double const waves = std::ceil(blocks / (blocks_at_once * gpu.multiprocessors));
  double const alone = waves * recipe.rounds * clocks_of_load * (1 + loads);
  return 3e-6 + std::max((image + results) / (0.7 * gpu.memory_bytes_per_second),
                         std::max(issue, alone) / gpu.clock_hertz);
}

}  // namespace

int log2_lanes_of(Index extent, int minimum, int maximum) {
  auto const padded = [&](int shift) { return (extent + (Index{1} << shift) - 1) >> shift << shift; };
  int best = minimum;
  for (int shift = minimum; shift <= maximum; ++shift)
    if (padded(shift) <= padded(best)) best = shift;
  return best;
}

DepthwiseSchedule depthwise_schedule(SlidingForm const& sliding, DepthwiseRecipe const& recipe) {
  DepthwiseSchedule schedule;
  WindowAxis const& other = across(sliding, recipe);
  schedule.log2_lanes = recipe.log2_lanes;
  schedule.items_of_block = (depthwise_threads >> recipe.log2_lanes) * recipe.rounds;
  schedule.items = static_cast<int>(items_of(sliding, recipe));
  schedule.channels = static_cast<int>(channels_of(sliding));
  auto const divisor = [](Index value) { return Divisor(std::max<Index>(1, value)); };
  schedule.channel_tiles = divisor(channel_tiles(sliding, recipe));
  schedule.runs = divisor(ceiling_divide(along(sliding, recipe).outputs, depthwise_run));
  schedule.across = divisor(
      recipe.channels_last ? other.outputs : ceiling_divide(other.outputs, Index{1} << recipe.log2_lanes));
  schedule.outputs = divisor(sliding.window.outputs);
  return schedule;
}

SlidingGrid depthwise_grid(SlidingForm const& sliding, DepthwiseRecipe const& recipe) {
  DepthwiseSchedule const schedule = depthwise_schedule(sliding, recipe);
  return {channel_tiles(sliding, recipe) * ceiling_divide(schedule.items, schedule.items_of_block), 1, 1};
}

Offer<Problem> depthwise(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = depthwise_violation(problem, device, options);
  if (!offer.refusal.empty()) return offer;
  if (problem.direction == ConvolutionDirection::filter) return depthwise_filter(problem, device);
  SlidingLaunches const launches = sliding_launches(problem, ConvolutionAlgorithm::depthwise);
  std::vector<SlidingForm> forms;
  for (auto const& launch : launches) forms.insert(forms.end(), launch.begin(), launch.end());
  ConvolutionRecipe& recipe = offer.recipe;
  recipe.algorithm = ConvolutionAlgorithm::depthwise;
  SlidingForm const& front = forms.front();
  recipe.product = product_recipe(front.form);
  recipe.launches = static_cast<int>(launches.size());
  DepthwiseRecipe& sliding = recipe.own.emplace<DepthwiseRecipe>();
  sliding.channels_last = !front.form.swapped;
  sliding.axis = compiled_in(forms, sliding.channels_last);
  bool const emulated = device.backend == Backend::emulator;
  if (emulated && !in_catalogue(sliding.axis, front.form.sum)) sliding.axis = {};
  sliding.vector = vector_of(sliding, forms, emulated);
  Index const lanes =
      sliding.channels_last ? channels_of(front) / sliding.vector : across(front, sliding).outputs;
  sliding.log2_lanes = log2_lanes_of(lanes, 3, sliding.channels_last ? 5 : 7);
  auto const shared = [&] {
    Index bytes = 0;
    for (SlidingForm const& form : forms) bytes = std::max(bytes, filter_bytes(form, sliding));
    return bytes;
  };
  while (sliding.channels_last && sliding.log2_lanes > 0 &&
         shared() > device.gpu.shared_bytes_per_multiprocessor / 4)
    --sliding.log2_lanes;
  if (shared() > device.gpu.shared_bytes_per_block) {
    offer.refusal =
        fmt::format("the filters of a block's channels need {} bytes of shared memory; {} has {} per block",
                    shared(), device.gpu.name, device.gpu.shared_bytes_per_block);
    return offer;
  }
  sliding.shared_bytes = static_cast<int>(shared());
  Index items = 0;
  for (SlidingForm const& form : forms) {
    offer.refusal = extent_violation({form.form});
    if (!offer.refusal.empty()) return offer;
    items += items_of(form, sliding);
  }
  Index const tiles = channel_tiles(front, sliding);
  if (items * tiles > max_int) {
    offer.refusal =
        fmt::format("{} runs of outputs for {} tiles of channels; at most 2147483647 in total", items, tiles);
    return offer;
  }
  // The filters of a block are reused for several rounds if there are enough blocks.
  Index const rounds = items * tiles / (depthwise_threads >> sliding.log2_lanes) /
                       std::max(1, 12 * device.gpu.multiprocessors);
  sliding.rounds = static_cast<int>(std::clamp<Index>(rounds, 1, 16));
  for (auto const& launch : launches) offer.predicted_seconds += predicted(launch, sliding, device.gpu);
  recipe.product.predicted_seconds = offer.predicted_seconds;
  if (emulated) offer.workspace_bytes = emulator::widening_bytes(problem, recipe);
  offer.text = fmt::format("{} outputs along {} by {} channels per thread, {} lanes of {}, {}, {} rounds, {}",
                           depthwise_run, sliding.channels_last ? "columns" : "rows", sliding.vector,
                           1 << sliding.log2_lanes, sliding.channels_last ? "channels" : "columns",
                           taps_text(sliding.axis), sliding.rounds, launches_text(launches));
  return offer;
}

}  // namespace cosmati::plan
