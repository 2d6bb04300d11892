// Assigns filters and images to blocks, and predicts the time, which is bound by instruction issue.
#include "src/plan/conv/filter/wgrad_direct.h"

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

constexpr Index sum_lanes = 32;  // WgradDirectTraits

Index halo(WindowAxis const& axis, Index outputs) {
  return (outputs - 1) * axis.output_step + Index{axis.taps - 1} * axis.tap_step + 1;
}
bool reaches_outside(WindowAxis const& axis) {
  return axis.origin < 0 || axis.origin + halo(axis, axis.outputs) > axis.size;
}

Index threads_of(WgradDirectRecipe const& recipe) { return Index{1} << recipe.log2_threads; }
Index slots_of(SlidingArguments const& w, WgradDirectRecipe const& recipe) {
  return Index{recipe.filters / recipe.thread_filters} * w.inputs * w.rows.taps;
}
Index taps_of(SlidingArguments const& w) { return Index{w.rows.taps} * w.columns.taps; }
Index weights_of(SlidingArguments const& w, bool bias) {
  return Index{w.outputs} * w.inputs * taps_of(w) + (bias ? w.outputs : 0);
}
Index passes_of(SlidingArguments const& w, WgradDirectRecipe const& recipe) {
  return ceiling_divide(w.images, recipe.images) * ceiling_divide(w.rows.outputs, recipe.rows);
}

PlaneSchedule image_planes(SlidingArguments const& w, WgradDirectRecipe const& recipe) {
  PlaneSchedule planes;
  planes.rows = to_int(halo(w.rows, recipe.rows));
  planes.columns = to_int(halo(w.columns, w.columns.outputs));
  planes.row_pitch = planes.columns | 1;  // odd, since adjacent lanes process adjacent rows of taps
  planes.channel_pitch = to_int(Index{planes.rows} * planes.row_pitch);
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
  planes.channel_pitch = to_int(Index{planes.rows} * planes.row_pitch);
  planes.image_pitch = to_int(Index{recipe.filters} * planes.channel_pitch);
  planes.channels_last = p.gradient_channel == 1 && p.window.outputs > 1;
  planes.log2_lanes =
      log2_lanes_of(Index{planes.columns} * (planes.channels_last ? recipe.filters : 1), 3, 5);
  planes.loaded_rows = Divisor(planes.rows);
  planes.channels = Divisor(recipe.filters);
  return planes;
}

// The planes of both tensors in shared memory.
struct BothPlanes {
  PlaneSchedule x, dy;
  BothPlanes(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe)
      : x(image_planes(gradient.parameters.window, recipe)), dy(gradient_planes(gradient, recipe)) {}
};

Index gradient_at(PlaneSchedule const& image, WgradDirectRecipe const& recipe) {
  constexpr Index run = 4, last_run = 4;  // filling the preceding planes may write past their end
  return ceiling_divide(Index{recipe.images} * image.image_pitch + last_run, run) * run;
}
Index shared_values(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe,
                    BothPlanes const& both) {
  SlidingArguments const& w = gradient.parameters.window;
  Index const planes = gradient_at(both.x, recipe) + Index{recipe.images} * both.dy.image_pitch;
  Index const slots = slots_of(w, recipe), threads = threads_of(recipe);
  Index const sums = threads / slots * slots * recipe.thread_filters * recipe.columns.taps + threads;
  return std::max(planes, sums);
}

// Predicted seconds of the main kernel. Slots are instructions of a thread; a multiprocessor issues four warp
// instructions per clock.
double seconds_of(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe, BothPlanes const& both,
                  Gpu const& gpu) {
  constexpr double share_of_issue = 0.4, dependent = 3, share_of_memory = 0.75;
  constexpr double slots_of_load = 30, slots_of_line = 20, clocks_of_pass = 2000, clocks_of_block = 2500;
  SlidingArguments const& w = gradient.parameters.window;
  DataType const sum = gradient.form.sum;
  Index const threads = threads_of(recipe), parts = threads / slots_of(w, recipe);
  Index const run = recipe.run, vector = vector_of_run(to_int(run), size_of(sum));
  double const rate = sum == DataType::f64   ? gpu.fma_f64
                      : sum == DataType::s32 ? gpu.fma_f32 / 2.0
                                             : gpu.fma_f32;
  double const slots_of_product = gpu.fma_f32 / std::max(1.0, rate);
  double const of_run = to_double(run * recipe.thread_filters * recipe.columns.taps) * slots_of_product +
                        to_double(halo(w.columns, run)) +
                        to_double(recipe.thread_filters * (run / vector + 1)) + 6;
  double const of_rest = to_double(recipe.thread_filters * recipe.columns.taps) * slots_of_product +
                         to_double(recipe.columns.taps + 2 * recipe.thread_filters) + 4;
  double const line = slots_of_line + to_double(w.columns.outputs / run) * of_run +
                      to_double(w.columns.outputs % run) * of_rest;
  Index const rows = Index{recipe.images} * recipe.rows;
  auto const loads = [&](PlaneSchedule const& planes, Index columns, Index loaded_rows) {
    Index const channels = planes.channels_last ? planes.channels.divisor : 1,
                lanes = Index{1} << planes.log2_lanes;
    return to_double(
        ceiling_divide(columns * channels, lanes) *
        ceiling_divide(recipe.images * loaded_rows * planes.channels.divisor / channels, threads / lanes));
  };
  PlaneSchedule const &x = both.x, &dy = both.dy;
  bool const together = w.columns.image_stride == 1 || x.channels_last;
  double const pass = to_double(ceiling_divide(rows, parts)) * line +
                      (together ? 1 : 4) * slots_of_load *
                          (loads(x, std::clamp(w.columns.size, 1, x.columns), x.loaded_rows.divisor) +
                           loads(dy, dy.columns, dy.rows));
  Index const passes = ceiling_divide(passes_of(w, recipe), recipe.blocks);
  double const slots = to_double(passes) * pass + to_double(parts) * recipe.filters * w.inputs *
                                                      to_double(taps_of(w)) / to_double(threads) * 4;
  Index const filter_blocks = ceiling_divide(w.outputs, recipe.filters);
  Index const blocks =
      ceiling_divide(recipe.blocks * filter_blocks * gradient.form.groups, gpu.multiprocessors);
  Index const bytes = shared_values(gradient, recipe, both) * size_of(sum) + 1024;
  Index const resident =
      std::max<Index>(1, std::min(Index{gpu.shared_bytes_per_multiprocessor} / bytes, 512 / threads));
  double const alone = slots * dependent + to_double(passes) * clocks_of_pass + clocks_of_block;
  double const clocks = std::max(to_double(blocks * (threads / 32)) * slots / 4 / share_of_issue,
                                 to_double(ceiling_divide(blocks, resident)) * alone);
  double const read =
      to_double(w.images) * to_double(gradient.form.groups) *
      (to_double(filter_blocks * w.inputs) * w.rows.size * w.columns.size * size_of(gradient.image) +
       to_double(w.outputs) * w.rows.outputs * w.columns.outputs * size_of(gradient.gradient));
  // With channels last, threads write a row of dy to shared memory with a stride. Measured on an H100 for the
  // first layer of VGG-16 with 64 images: 4.9 ms, but 1.7 ms with channels first.
  constexpr double slowdown_of_channels_last = 2.8;
  return std::max(clocks / gpu.clock_hertz, read / (share_of_memory * gpu.memory_bytes_per_second)) *
         (dy.channels_last ? slowdown_of_channels_last : 1);
}

}  // namespace

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
  schedule.bias_parts = to_int(threads / recipe.filters);
  schedule.filters = recipe.filters;
  schedule.weights = to_int(weights_of(w, bias));
  schedule.tiles_down = divisor(ceiling_divide(w.rows.outputs, recipe.rows));
  schedule.tile_rows = divisor(recipe.rows);
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

// Searches for the recipe that is predicted to be fastest.
class RecipeSearch {
 public:
  RecipeSearch(WgradDirectForm const& gradient, KnownAxis const& columns, Gpu const& gpu)
      : gradient_(gradient), window_(gradient.parameters.window), columns_(columns), gpu_(gpu) {}

  // Considers recipes for blocks of 2^log2_threads threads that each compute `filters` filters and `run`
  // outputs at a time.
  void consider_tile(int log2_threads, int filters, int run) {
    constexpr int max_values = 72, max_sums = 40;  // in registers
    if (filters * columns_.taps > max_sums ||
        filters * columns_.taps + halo(window_.columns, run) > max_values)
      return;
    WgradDirectRecipe now;
    now.columns = columns_;
    now.log2_threads = log2_threads;
    now.run = run, now.thread_filters = filters;
    for (Index all = ceiling_divide(window_.outputs, filters); all > 0;
         all = all > 1 ? ceiling_divide(all, 2) : 0) {
      now.filters = to_int(all * filters);
      if (slots_of(window_, now) > threads_of(now) || now.filters > threads_of(now)) continue;
      for (Index down = 1; down <= window_.rows.outputs; down *= 2) consider_rows(now, down);
    }
  }

  WgradDirectRecipe const& best() const { return best_; }  // shared_bytes = 0: no recipe was found
  double seconds() const { return seconds_; }
  Index groups() const { return std::max<Index>(1, gradient_.form.groups); }

 private:
  // `down`: the number of row tiles.
  void consider_rows(WgradDirectRecipe now, Index down) {
    Index const images = std::max(1, window_.images);
    now.rows = to_int(std::max<Index>(1, ceiling_divide(window_.rows.outputs, down)));
    for (Index several = down == 1 ? std::min<Index>(images, 16) : 1; several > 0; several /= 2) {
      now.images = to_int(several);
      Index const others = groups() * ceiling_divide(window_.outputs, now.filters);
      BothPlanes const planes(gradient_, now);
      for (Index resident : {1, 2, 4}) {
        now.blocks = to_int(std::clamp<Index>(gpu_.multiprocessors * resident / others, 1,
                                              std::max<Index>(1, passes_of(window_, now))));
        consider(now, planes);
      }
    }
  }
  void consider(WgradDirectRecipe const& now, BothPlanes const& planes) {
    Index const bytes = shared_values(gradient_, now, planes) * size_of(gradient_.form.sum);
    if (bytes > gpu_.shared_bytes_per_block) return;
    constexpr double launches_seconds = 6e-6, sum_seconds = 3e-7;  // per four loads of the summing kernel
    double const seconds = launches_seconds + seconds_of(gradient_, now, planes, gpu_) +
                           sum_seconds * to_double(ceiling_divide(now.blocks, 64));
    if (best_.shared_bytes > 0 && seconds >= seconds_) return;
    seconds_ = seconds;
    best_ = now;
    best_.shared_bytes = to_int(bytes);
  }

  WgradDirectForm const& gradient_;
  SlidingArguments const& window_;
  KnownAxis columns_;
  Gpu const& gpu_;
  WgradDirectRecipe best_;
  double seconds_ = 0;
};

}  // namespace

Offer<Problem> wgrad_direct(Problem const& problem, Device const& device) {
  Offer<Problem> offer;
  WgradDirectForm const gradient = wgrad_direct_form(problem);
  SlidingArguments const& w = gradient.parameters.window;
  KnownAxis const columns{w.columns.taps, w.columns.output_step, w.columns.tap_step};
  bool const emulated = device.backend == Backend::emulator;
  offer.refusal = wgrad_direct_violation(gradient, columns, emulated);
  if (!offer.refusal.empty()) return offer;
  RecipeSearch search(gradient, columns, device.gpu);
  if (emulated)
    search.consider_tile(7, emulated_filter_filters, emulated_filter_run);
  else
    for (int const log2_threads : {7, 8, 9})
      for (int const filters : {1, 2, 3, 4, 6, 8})
        for (int run = 1; run <= std::clamp(w.columns.outputs, 1, 14); ++run)
          search.consider_tile(log2_threads, filters, run);
  WgradDirectRecipe const& chosen = search.best();
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
  recipe.product.partial_bytes =
      static_cast<std::size_t>(chosen.blocks * search.groups() * weights * size_of(gradient.form.sum));
  offer.workspace_bytes =
      recipe.product.partial_bytes + (emulated ? emulator::widening_bytes(problem, recipe) : 0);
  offer.predicted_seconds = recipe.product.predicted_seconds = search.seconds();
  offer.text = fmt::format(
      "{} images of {} rows of {} filters at a time, thread {}x{}x{} filters by outputs by taps, {} threads, "
      "{} "
      "bytes of shared memory, sums of {} blocks added in a fixed order",
      chosen.images, chosen.rows, chosen.filters, chosen.thread_filters, chosen.run, chosen.columns.taps,
      threads_of(chosen), chosen.shared_bytes, chosen.blocks);
  return offer;
}

}  // namespace cosmati::plan
