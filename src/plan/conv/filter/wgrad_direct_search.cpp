// Predicts the time of wgrad_direct, which is bound by instruction issue and by waiting for loads, and
// searches for its fastest recipe.
#include "src/plan/conv/filter/wgrad_direct_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cosmati::plan {
namespace {

// Instructions of a thread for adjacent outputs of a row.
class OutputInstructions {
 public:
  OutputInstructions(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe, Gpu const& gpu)
      : run_(recipe.run) {
    DataType const sum = gradient.form.sum;
    Index const run = recipe.run, filters = recipe.thread_filters, taps = recipe.columns.taps;
    double const rate = sum == DataType::f64   ? gpu.fma_f64
                        : sum == DataType::s32 ? gpu.fma_f32 / 2.0
                                               : gpu.fma_f32;
    double const of_product = gpu.fma_f32 / std::max(1.0, rate);
    Index const vector = vector_of_run(recipe.run, size_of(sum));
    of_run_ = to_double(run * filters * taps) * of_product +
              to_double(halo(gradient.parameters.window.columns, run)) +
              to_double(filters * (run / vector + 1)) + 6;
    of_rest_ = to_double(filters * taps) * of_product + to_double(taps + 2 * filters) + 4;
  }
  double operator()(Index outputs) const {
    return to_double(outputs / run_) * of_run_ + to_double(outputs % run_) * of_rest_;
  }

 private:
  Index run_;
  double of_run_ = 0, of_rest_ = 0;
};

constexpr Index bytes_of_banks = 128;

// How many more times than without conflicts a warp accesses shared memory for a run: lanes of different
// parts read at distances of a segment, or of a row.
double conflicts_of_run(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe) {
  constexpr Index lanes = 32;
  SlidingArguments const& w = gradient.parameters.window;
  Index const slots = slots_of(w, recipe),
              parts = std::min(threads_of(recipe) / slots, ceiling_divide(lanes, slots));
  if (parts == 1) return 0;
  Index const vector = vector_of_run(recipe.run, size_of(gradient.form.sum)), outputs = w.columns.outputs;
  Index const banks = bytes_of_banks / size_of(gradient.form.sum);
  bool const whole = recipe.segment >= outputs;
  Index const of_dy = whole ? ceiling_divide(outputs, vector) : recipe.segment / vector;
  Index const of_x = whole ? w.rows.output_step * (halo(w.columns, outputs) | 1)
                           : Index{recipe.segment} * w.columns.output_step;
  auto const more = [&](Index distance, Index units) {
    return to_double(ceiling_divide(parts, units / std::gcd(distance, units)) - 1);
  };
  return to_double(recipe.thread_filters * recipe.run / vector) * more(of_dy, banks / vector) +
         to_double(halo(w.columns, recipe.run)) * more(of_x, banks);
}

// Instructions of a thread for its share of a pass: of the segments of all rows.
double instructions_of_share(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe,
                             OutputInstructions const& of_outputs) {
  constexpr double instructions_of_segment = 25, instructions_of_conflict = 1.9;
  SlidingArguments const& w = gradient.parameters.window;
  Index const parts = threads_of(recipe) / slots_of(w, recipe), outputs = std::max(1, w.columns.outputs);
  Index const segments = Index{recipe.images} * recipe.rows * ceiling_divide(outputs, recipe.segment);
  double const conflicts =
      to_double(ceiling_divide(recipe.segment, recipe.run)) * conflicts_of_run(gradient, recipe);
  return to_double(ceiling_divide(segments, parts)) *
         (instructions_of_segment + of_outputs(std::min<Index>(outputs, recipe.segment)) +
          instructions_of_conflict * conflicts);
}
// Divides rows among the parts where there are too few of them: into segments of whole runs.
void choose_segment(WgradDirectForm const& gradient, WgradDirectRecipe& recipe,
                    OutputInstructions const& of_outputs) {
  constexpr Index max_segments = 16;
  Index const outputs = std::max(1, gradient.parameters.window.columns.outputs);
  Index const runs = ceiling_divide(outputs, recipe.run);
  WgradDirectRecipe now = recipe;
  double least = std::numeric_limits<double>::infinity();
  for (Index count = 1; count <= std::min(runs, max_segments); ++count) {
    now.segment = to_int(count == 1 ? outputs : ceiling_divide(runs, count) * recipe.run);
    double const instructions = instructions_of_share(gradient, now, of_outputs);
    if (instructions >= least) continue;
    least = instructions;
    recipe.segment = now.segment;
  }
}

// What a thread does.
struct Work {
  double instructions = 0, rounds = 0;  // rounds: waits for global memory
};
// To load planes into shared memory. `columns`, `rows`: what exists of a plane, at most. `apart`: columns are
// not adjacent in memory.
Work loads_of(PlaneSchedule const& planes, WgradDirectRecipe const& recipe, Index columns, Index rows,
              Index vector, bool apart) {
  constexpr double instructions_of_vector = 24, instructions_of_long = 6, instructions_of_short = 56,
                   slowdown_apart = 4;
  constexpr Index in_flight = 4, warp = 32;
  Index const threads = threads_of(recipe), channels = planes.channels.divisor;
  Index const lanes = Index{1} << planes.log2_lanes;
  if (planes.dense) {
    Index const lines = ceiling_divide(recipe.images * channels, threads / warp),
                vectors = rows * columns / vector;
    return {instructions_of_vector * to_double(lines * ceiling_divide(vectors, warp)),
            to_double(lines * ceiling_divide(vectors, in_flight * warp))};
  }
  Index const together = planes.channels_last ? channels : 1, width = columns * together;
  Index const lines = ceiling_divide(recipe.images * rows * channels / together, threads / lanes);
  bool const long_lines = lanes == warp && width > 2 * warp;
  double const loads = to_double(lines * ceiling_divide(width, lanes));
  double const rounds =
      to_double(long_lines ? lines * ceiling_divide(width, in_flight * lanes)
                           : ceiling_divide(lines, in_flight) * ceiling_divide(width, lanes));
  double const slowdown = apart && !planes.channels_last ? slowdown_apart : 1;
  return {slowdown * (long_lines ? instructions_of_long : instructions_of_short) * loads, slowdown * rounds};
}

// In a pass: it loads planes, and adds products.
Work pass_of(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe, BothPlanes const& both,
             OutputInstructions const& of_outputs) {
  SlidingArguments const& w = gradient.parameters.window;
  Index const vector = vector_of_run(recipe.run, size_of(gradient.form.sum));
  PlaneSchedule const &x = both.x, &dy = both.dy;
  Work const of_x = loads_of(x, recipe, std::clamp(w.columns.size, 1, x.columns), x.loaded_rows.divisor,
                             vector, w.columns.image_stride != 1);
  Work const of_dy =
      loads_of(dy, recipe, dy.columns, dy.rows, vector, gradient.parameters.gradient_column != 1);
  return {instructions_of_share(gradient, recipe, of_outputs) + of_x.instructions + of_dy.instructions,
          of_x.rounds + of_dy.rounds};
}

constexpr Index issued_per_clock = 4;  // warp instructions of a multiprocessor
constexpr double share_of_clock = 0.89;

// Predicted seconds of the main kernel. Both what a multiprocessor issues and what a block waits for were
// fitted to 76 recipes of ten layers in f32, NCHW, measured on an H200 (docs/decisions/0026): deviation 1.18.
double seconds_of(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe, BothPlanes const& planes,
                  Work const& pass, Gpu const& gpu) {
  constexpr double clocks_of_instruction = 1.37, clocks_of_round = 734, clocks_of_pass = 2140;
  constexpr double share_of_memory = 0.75;
  SlidingArguments const& w = gradient.parameters.window;
  Index const threads = threads_of(recipe), parts = threads / slots_of(w, recipe), warps = threads / 32;
  double const passes = to_double(ceiling_divide(passes_of(w, recipe), recipe.blocks));
  double const instructions = passes * pass.instructions + to_double(parts) * recipe.filters * w.inputs *
                                                               to_double(taps_of(w)) / to_double(threads) * 4;
  Index const filter_blocks = ceiling_divide(w.outputs, recipe.filters);
  Index const blocks =
      ceiling_divide(recipe.blocks * filter_blocks * gradient.form.groups, gpu.multiprocessors);
  Index const bytes = recipe.shared_bytes + 1024;
  Index const resident =
      std::max<Index>(1, std::min(Index{gpu.shared_bytes_per_multiprocessor} / bytes, 512 / threads));
  double const alone = instructions * std::max(clocks_of_instruction, to_double(warps) / issued_per_clock) +
                       passes * (clocks_of_round * pass.rounds + clocks_of_pass);
  double const issued = to_double(blocks * warps) * instructions / issued_per_clock;
  double const waited = to_double(ceiling_divide(blocks, resident)) * alone;
  double const clocks = std::sqrt(issued * issued + waited * waited);  // std::hypot would require glibc 2.35
  double const read =
      to_double(w.images) * to_double(gradient.form.groups) *
      (to_double(filter_blocks * w.inputs) * w.rows.size * w.columns.size * size_of(gradient.image) +
       to_double(w.outputs) * w.rows.outputs * w.columns.outputs * size_of(gradient.gradient));
  // Channels are separated on their way to shared memory. Measured on an H200: three layers took 1.25 to 1.37
  // times their predictions.
  double const slowdown = planes.dy.channels_last ? 1.25 : 1;
  return slowdown * std::max(clocks / (share_of_clock * gpu.clock_hertz),
                             read / (share_of_memory * gpu.memory_bytes_per_second));
}

// Searches for the recipe that is predicted to be fastest.
class RecipeSearch {
 public:
  RecipeSearch(WgradDirectForm const& gradient, KnownAxis const& columns, Gpu const& gpu)
      : gradient_(gradient), window_(gradient.parameters.window), columns_(columns), gpu_(gpu) {}

  // Considers recipes for blocks of 2^log2_threads threads that each compute `filters` filters and `run`
  // outputs at a time.
  void consider_tile(int log2_threads, int filters, int run) {
    constexpr Index max_values = 84, max_sums = 56;  // in registers
    Index const sums = Index{filters} * columns_.taps;
    Index const registers = std::max<Index>(1, size_of(gradient_.form.sum) / 4);
    if (sums * registers > max_sums || (sums + halo(window_.columns, run)) * registers > max_values) return;
    WgradDirectRecipe now;
    now.columns = columns_;
    now.log2_threads = log2_threads;
    now.run = run, now.thread_filters = filters;
    OutputInstructions const of_outputs(gradient_, now, gpu_);
    if (products_seconds(now, of_outputs) >= best_.seconds) return;
    for (Index all = ceiling_divide(window_.outputs, filters); all > 0;
         all = all > 1 ? ceiling_divide(all, 2) : 0) {
      now.filters = to_int(all * filters);
      if (slots_of(window_, now) > threads_of(now) || now.filters > threads_of(now)) continue;
      for (Index down = 1; down < 2 * window_.rows.outputs; down *= 2)
        consider_rows(now, std::min<Index>(down, window_.rows.outputs), of_outputs);
    }
  }

  FoundRecipe const& best() const { return best_; }

 private:
  Index groups() const { return std::max<Index>(1, gradient_.form.groups); }
  // If every multiprocessor only computed products.
  double products_seconds(WgradDirectRecipe const& recipe, OutputInstructions const& of_outputs) const {
    Index const rows = Index{window_.images} * window_.rows.outputs * window_.inputs * window_.rows.taps;
    Index const filters = groups() * ceiling_divide(window_.outputs, recipe.thread_filters);
    double const instructions = to_double(rows) * to_double(filters) * of_outputs(window_.columns.outputs);
    return instructions / 32 / (issued_per_clock * gpu_.multiprocessors * share_of_clock * gpu_.clock_hertz);
  }
  // `down`: the number of row tiles.
  void consider_rows(WgradDirectRecipe now, Index down, OutputInstructions const& of_outputs) {
    Index const images = std::max(1, window_.images);
    now.rows = to_int(std::max<Index>(1, ceiling_divide(window_.rows.outputs, down)));
    for (Index several = down == 1 ? std::min<Index>(images, 16) : 1; several > 0; several /= 2) {
      now.images = to_int(several);
      // Far too large planes, whose pitches are not integers of 32 bits.
      Index const values = several * (window_.inputs * halo(window_.rows, now.rows) *
                                          halo(window_.columns, window_.columns.outputs) +
                                      Index{now.filters} * now.rows * window_.columns.outputs);
      if (values * size_of(gradient_.form.sum) > gpu_.shared_bytes_per_block) continue;
      Index const others = groups() * ceiling_divide(window_.outputs, now.filters);
      BothPlanes const planes(gradient_, now);
      Index const bytes = shared_values(gradient_, now, planes) * size_of(gradient_.form.sum);
      if (bytes > gpu_.shared_bytes_per_block) continue;
      now.shared_bytes = to_int(bytes);
      choose_segment(gradient_, now, of_outputs);
      Work const pass = pass_of(gradient_, now, planes, of_outputs);
      for (Index resident : {1, 2, 4}) {
        now.blocks = to_int(std::clamp<Index>(gpu_.multiprocessors * resident / others, 1,
                                              std::max<Index>(1, passes_of(window_, now))));
        consider(now, planes, pass);
      }
    }
  }
  void consider(WgradDirectRecipe const& now, BothPlanes const& planes, Work const& pass) {
    constexpr double launches_seconds = 7.6e-6, sum_seconds = 3e-7;  // per four loads of the summing kernel
    double const seconds = launches_seconds + seconds_of(gradient_, now, planes, pass, gpu_) +
                           sum_seconds * to_double(ceiling_divide(now.blocks, 64));
    if (seconds >= best_.seconds) return;
    best_ = {now, seconds};
  }

  WgradDirectForm const& gradient_;
  SlidingArguments const& window_;
  KnownAxis columns_;
  Gpu const& gpu_;
  FoundRecipe best_;
};

}  // namespace

FoundRecipe find_wgrad_direct_recipe(WgradDirectForm const& gradient, KnownAxis const& columns,
                                     Device const& device) {
  RecipeSearch search(gradient, columns, device.gpu);
  if (device.backend == Backend::emulator)
    search.consider_tile(7, emulated_filter_filters, emulated_filter_run);
  else
    for (int const log2_threads : {7, 8, 9})
      for (int const filters : {16, 12, 8, 6, 5, 4, 3, 2, 1})
        for (int run = 1; run <= std::clamp(gradient.parameters.window.columns.outputs, 1, 14); ++run)
          search.consider_tile(log2_threads, filters, run);
  return search.best();
}

}  // namespace cosmati::plan
