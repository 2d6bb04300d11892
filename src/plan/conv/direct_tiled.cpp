// Tile choice of the tiled direct convolution, and its predicted time, which is bound by instruction issue.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/wgrad_direct.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// The number of shared memory wavefronts per warp load of image elements; one wavefront serves each bank
// once.
int wavefronts(SlidingForm const& sliding, DirectTiledRecipe const& recipe, PlaneSchedule const& planes) {
  DirectTile const& tile = recipe.tile;
  Index in_bank[32][32];
  int of_bank[32] = {}, maximum = 1;
  for (Index thread = 0; thread < 32; ++thread) {
    Index const column = thread % tile.columns, above = thread / tile.columns;
    Index const down = tile.rows / tile.thread_rows, row = above % down * tile.thread_rows;
    Index const image = above / down / (tile.filters / tile.thread_filters) % recipe.images;
    Index const at = image * planes.image_pitch + row * sliding.window.rows.output_step * planes.row_pitch +
                     column * sliding.window.columns.output_step;
    Index* const bank = in_bank[at % 32];
    int& count = of_bank[at % 32];
    if (std::find(bank, bank + count, at) == bank + count) bank[count++] = at;
    maximum = std::max(maximum, count);
  }
  return maximum;
}

PlaneSchedule smallest_planes(SlidingForm const& sliding, DirectTiledRecipe const& recipe) {
  SlidingArguments const& window = sliding.window;
  PlaneSchedule planes;
  planes.rows = to_int(halo(window.rows, recipe.tile.rows));
  planes.columns = to_int(halo(window.columns, recipe.tile.columns));
  planes.row_pitch = planes.columns;
  planes.channel_pitch = to_int(Index{planes.rows} * planes.row_pitch);
  planes.image_pitch = to_int(Index{recipe.channels} * planes.channel_pitch);
  planes.channels_last = window.image_input == 1 && window.inputs > 1;
  int const width = std::clamp(window.columns.size, 1, planes.columns);
  planes.log2_lanes = log2_lanes_of(Index{width} * (planes.channels_last ? recipe.channels : 1), 3, 5);
  planes.fill = reaches_outside(window.rows) || reaches_outside(window.columns);
  planes.loaded_rows = Divisor(std::clamp(window.rows.size, 1, planes.rows));
  planes.channels = Divisor(recipe.channels);
  return planes;
}

// Chooses pitches with few bank conflicts.
PlaneSchedule planes_of(SlidingForm const& sliding, DirectTiledRecipe const& recipe) {
  PlaneSchedule const smallest = smallest_planes(sliding, recipe);
  PlaneSchedule best = smallest;
  int minimum = wavefronts(sliding, recipe, best);
  for (int of_row = 0; of_row < 8 && minimum > 1; ++of_row)
    for (int of_image = 0; of_image < (recipe.images > 1 ? 16 : 1) && minimum > 1; ++of_image) {
      PlaneSchedule planes = smallest;
      planes.row_pitch += of_row;
      planes.channel_pitch = to_int(Index{planes.rows} * planes.row_pitch);
      planes.image_pitch = to_int(Index{recipe.channels} * planes.channel_pitch + of_image);
      int const now = wavefronts(sliding, recipe, planes);
      if (now < minimum) minimum = now, best = planes;
    }
  return best;
}

Index weight_values(SlidingForm const& sliding, DirectTiledRecipe const& recipe) {
  Index const taps = Index{sliding.window.rows.taps} * sliding.window.columns.taps;
  return ceiling_divide(taps * recipe.channels * filter_pitch_of(recipe.tile), 4) * 4;
}
Index shared_values(SlidingForm const& sliding, DirectTiledRecipe const& recipe,
                    PlaneSchedule const& planes) {
  constexpr Index last_run = 4;  // filling the planes may write up to one run past their end
  return weight_values(sliding, recipe) + Index{recipe.images} * planes.image_pitch + last_run;
}

struct Cost {
  Index shared_bytes = 0;
  double seconds = 0;
};

// The cost of a block: the clocks a multiprocessor needs to issue its instructions, and its latency when it
// runs alone. Slots are instructions of a thread; a multiprocessor issues 4 warp instructions per clock.
struct BlockCost {
  double issue, alone;
};
// If `planes` is null: a lower bound, for one round and no loads.
BlockCost block_cost(SlidingForm const& sliding, DirectTiledRecipe const& recipe, PlaneSchedule const* planes,
                     Gpu const& gpu) {
  constexpr double share_of_issue = 0.5, dependent = 2;
  constexpr double slots_of_load = 30, slots_of_result = 20, slots_of_block = 400;
  constexpr double clocks_of_round = 2000, clocks_of_block = 1500;
  // A block that runs alone waits for its loads: without this, five layers with 25 to 300 loads per thread
  // and round took 1.6 to 2.5 times as long as predicted on an H200 (docs/decisions/0045).
  constexpr double clocks_of_load = 150;
  SlidingArguments const& w = sliding.window;
  DirectTile const& tile = recipe.tile;
  Index const threads = tile_threads(recipe), sums = Index{tile.thread_rows} * tile.thread_filters;
  // Results that are stored by steps of the filter take 5 instructions unless the epilogue has operands; 12
  // slots explain eight layers on an H200, with at least 9 clocks of a multiprocessor: 64 channels from 2 by
  // one tap, 16 images of 512x512, took 339 us in f16 and 346 in f32.
  bool const by_steps = sliding.form.swapped && sliding.form.operands.empty();
  double const issued_of_result = by_steps ? 12 : slots_of_result, clocks_of_result = by_steps ? 9 : 0;
  DataType const sum = sliding.form.sum;
  double const rate = sum == DataType::f64   ? gpu.fma_f64
                      : sum == DataType::s32 ? gpu.fma_f32 / 2.0
                                             : gpu.fma_f32;
  double const slots_of_product = gpu.fma_f32 / std::max(1.0, rate);
  Index const columns = Index{w.inputs} * w.columns.taps;  // in a window, over all channels
  bool const known = recipe.rows.taps > 0;
  Index const places = known ? halo(w.rows, tile.thread_rows) : Index{w.rows.taps} * tile.thread_rows;
  Index const filters =
      Index{w.rows.taps} * tile.thread_filters / vector_of_run(tile.thread_filters, size_of(sum));
  double const slots_of_column = to_double(w.rows.taps * sums) * slots_of_product + 2.0 * to_double(places) +
                                 to_double(filters) + (known ? 6.0 : 4.0 * w.rows.taps);
  Index rounds = 1;
  double loads = 0;
  if (planes != nullptr) {
    rounds = std::max<Index>(1, ceiling_divide(w.inputs, recipe.channels));
    Index const lanes = Index{1} << planes->log2_lanes;
    Index const channels_of_line = planes->channels_last ? recipe.channels : 1;
    Index const width = Index{std::clamp(w.columns.size, 1, planes->columns)} * channels_of_line;
    Index const lines =
        Index{recipe.images} * planes->loaded_rows.divisor * recipe.channels / channels_of_line;
    double const scattered = w.columns.image_stride == 1 || planes->channels_last ? 1 : 4;
    loads = scattered * to_double(ceiling_divide(width, lanes) * ceiling_divide(lines, threads / lanes)) +
            to_double(ceiling_divide(weight_values(sliding, recipe), threads));
  }
  double const without_results =
      to_double(columns) * slots_of_column + to_double(rounds) * loads * slots_of_load + slots_of_block;
  double const issued = without_results + to_double(sums) * issued_of_result;
  double const waited_for = without_results + to_double(sums) * slots_of_result;
  double const warp = std::max({issued / 4 / share_of_issue, to_double(columns * (places + 2 * filters)),
                                to_double(sums) * clocks_of_result});
  return {to_double(threads / 32) * warp, waited_for * dependent +
                                              to_double(rounds) * (clocks_of_round + loads * clocks_of_load) +
                                              clocks_of_block};
}

// A form of a launch, for all that cost the same: phases that differ only in where they begin.
struct CountedForm {
  SlidingForm const* sliding;
  Index count = 1;
};
using CountedLaunches = std::vector<std::vector<CountedForm>>;

bool costs_the_same(WindowAxis const& a, WindowAxis const& b) {
  return a.outputs == b.outputs && a.taps == b.taps && a.size == b.size && a.output_step == b.output_step &&
         a.tap_step == b.tap_step && a.image_stride == b.image_stride;
}
CountedLaunches counted(SlidingLaunches const& launches) {
  CountedLaunches all;
  for (auto const& forms : launches) {
    std::vector<CountedForm>& different = all.emplace_back();
    for (SlidingForm const& sliding : forms) {
      auto const same = std::find_if(different.begin(), different.end(), [&](CountedForm const& other) {
        return costs_the_same(other.sliding->window.rows, sliding.window.rows) &&
               costs_the_same(other.sliding->window.columns, sliding.window.columns);
      });
      if (same == different.end())
        different.push_back({&sliding});
      else
        ++same->count;
    }
  }
  return all;
}

// Sums over the forms of a launch: its blocks, their clocks, and memory traffic; interleaved phases read the
// image from memory once.
struct LaunchCost {
  Index blocks = 0, image = 0;
  BlockCost sum{};
  double results = 0;

  // If `planes` is null, adds lower bounds.
  void add(CountedForm const& form, DirectTiledRecipe const& recipe, PlaneSchedule const* planes,
           Gpu const& gpu) {
    SlidingForm const& sliding = *form.sliding;
    SlidingArguments const& w = sliding.window;
    SlidingGrid const grid = tile_grid(sliding, recipe);
    Index const of_form = form.count * grid.x * grid.y * grid.z;
    BlockCost const each = block_cost(sliding, recipe, planes, gpu);
    blocks += of_form;
    sum.issue += to_double(of_form) * each.issue;
    sum.alone += to_double(of_form) * each.alone;
    if (planes == nullptr) return;
    image =
        std::max(image, grid.x * grid.z * recipe.images * w.inputs * std::min(w.rows.size, planes->rows) *
                            std::min(w.columns.size, planes->columns) * size_of(sliding.form.image().type));
    results += to_double(form.count) *
               static_cast<double>(sliding.result_bytes() * (1 + sliding.form.operands.size()));
  }
  double clocks(Index resident, Gpu const& gpu) const {
    if (blocks == 0) return 0;
    Index const of_multiprocessor = ceiling_divide(blocks, gpu.multiprocessors);
    return std::max(to_double(of_multiprocessor) * sum.issue,
                    to_double(ceiling_divide(of_multiprocessor, resident)) * sum.alone) /
           to_double(blocks);
  }
  double bytes() const { return to_double(image) + results; }
};

constexpr double launch_seconds = 3e-6;

// A lower bound of the seconds that a tile takes, whatever the number of channels at a time.
double least_seconds(CountedLaunches const& launches, DirectTiledRecipe const& recipe, Gpu const& gpu) {
  constexpr Index most_resident = 64;
  double seconds = 0;
  for (auto const& forms : launches) {
    LaunchCost least;
    for (CountedForm const& form : forms) least.add(form, recipe, nullptr, gpu);
    seconds += launch_seconds + least.clocks(most_resident, gpu) / gpu.clock_hertz;
  }
  return seconds;
}

// With `exact`, uses the actual pitches of the launches instead of the smallest ones.
Cost cost_of(CountedLaunches const& launches, DirectTiledRecipe const& recipe, Gpu const& gpu, bool exact) {
  constexpr double share_of_memory = 0.75;
  Cost cost;
  DirectTile const& tile = recipe.tile;
  Index const value_bytes = size_of(launches.front().front().sliding->form.sum),
              threads = tile_threads(recipe);
  std::vector<LaunchCost> of_launch(launches.size());
  for (std::size_t i = 0; i < launches.size(); ++i)
    for (CountedForm const& form : launches[i]) {
      SlidingForm const& sliding = *form.sliding;
      PlaneSchedule const smallest = smallest_planes(sliding, recipe);
      Index const values = shared_values(sliding, recipe, exact ? planes_of(sliding, recipe) : smallest);
      cost.shared_bytes = std::max(cost.shared_bytes, values * value_bytes);
      of_launch[i].add(form, recipe, &smallest, gpu);
    }
  Index const registers = std::min<Index>(
      128, 48 + (tile.thread_rows * (tile.thread_filters + 4) + tile.thread_filters) * value_bytes / 4);
  Index const resident =
      std::max<Index>(1, std::min({Index{gpu.shared_bytes_per_multiprocessor} / (cost.shared_bytes + 1024),
                                   65536 / (registers * threads), 2048 / threads}));
  for (LaunchCost const& launch : of_launch)
    cost.seconds +=
        launch_seconds + std::max(launch.clocks(resident, gpu) / gpu.clock_hertz,
                                  launch.bytes() / (share_of_memory * gpu.memory_bytes_per_second));
  return cost;
}

// Makes taps and steps of the rows compile-time constants if there are few.
KnownAxis compiled_in(std::vector<SlidingForm> const& forms) {
  KnownAxis const known = known_axis(forms, &SlidingArguments::rows);
  constexpr int max_taps = 31, max_step = 4;
  bool const few = known.taps >= 1 && known.taps <= max_taps && std::abs(known.tap_step) <= max_step &&
                   known.output_step <= max_step;
  return few ? known : KnownAxis{};
}

// True if the emulator has this kernel with compile-time taps.
bool in_direct_catalogue(KnownAxis const& rows, DataType sum) {
  bool const forward = rows.taps == 3 && rows.output_step <= 2 && rows.tap_step == 1 && !rows.uneven;
  bool const phases = rows.taps == 2 && rows.output_step == 1 && rows.tap_step == -1 && rows.uneven;
  return sum == DataType::f32 && (forward || phases);
}

class Search {
 public:
  Search(SlidingLaunches const& launches, Gpu const& gpu) : launches_(counted(launches)), gpu_(gpu) {
    for (auto const& forms : launches)
      for (SlidingForm const& sliding : forms) {
        rows_ = std::max<Index>(rows_, sliding.window.rows.outputs);
        columns_ = std::max<Index>(columns_, sliding.window.columns.outputs);
      }
    SlidingArguments const& window = launches.front().front().window;
    outputs_ = std::max(1, window.outputs);
    images_ = std::max(1, window.images);
    inputs_ = std::max(1, window.inputs);
  }

  // Considers blocks of up to `threads` threads, each computing thread_rows rows for thread_filters filters.
  void consider(KnownAxis const& rows, Index threads, int thread_rows, int thread_filters) {
    constexpr Index max_values = 80;  // in registers
    Index const places = known_window(rows.taps, rows.output_step, rows.tap_step, thread_rows).places;
    if (places + Index{thread_rows + 1} * thread_filters > max_values) return;
    DirectTiledRecipe recipe;
    recipe.rows = rows;
    Index const down = ceiling_divide(rows_, thread_rows);
    for (Index groups = std::min(ceiling_divide(outputs_, thread_filters), threads); groups > 0;
         groups = groups > 1 ? ceiling_divide(groups, 2) : 0) {
      Index const of_group = threads / groups;
      Index columns = std::min(columns_, of_group), runs = std::min(down, of_group / columns);
      if (columns < columns_) columns = of_group >= 32 ? of_group / 32 * 32 : of_group;
      runs = ceiling_divide(down, ceiling_divide(down, runs));
      recipe.tile = {to_int(runs * thread_rows), to_int(columns), to_int(groups * thread_filters),
                     thread_rows, thread_filters};
      bool const whole = columns == columns_ && runs == down;
      for (Index images = whole ? std::min(images_, of_group / (columns * runs)) : 1; images > 0;
           images /= 2) {
        recipe.images = to_int(images);
        consider_channels(recipe);
      }
    }
  }
  // Considers one tile, with as many images as `threads` can process.
  void consider(KnownAxis const& rows, Index threads, DirectTile const& tile) {
    DirectTiledRecipe recipe;
    recipe.rows = rows;
    recipe.tile = tile;
    bool const whole = tile.rows >= rows_ && tile.columns >= columns_;
    recipe.images = whole ? to_int(std::min(images_, threads / Index{tile.threads()})) : 1;
    consider_channels(recipe);
  }

  DirectTiledRecipe const& best() const { return best_; }
  double seconds() const { return seconds_; }
  Index min_bytes() const { return min_bytes_; }
  bool found() const { return best_.shared_bytes > 0; }

 private:
  void consider_channels(DirectTiledRecipe recipe) {
    Index const maximum = gpu_.shared_bytes_per_block;
    if (found() && least_seconds(launches_, recipe, gpu_) >= seconds_) return;
    for (Index channels = std::min<Index>(inputs_, 32); channels > 0;
         channels = channels > 1 ? ceiling_divide(channels, 2) : 0) {
      recipe.channels = to_int(channels);
      Cost cost = cost_of(launches_, recipe, gpu_, false);
      if (min_bytes_ == 0 || cost.shared_bytes < min_bytes_) min_bytes_ = cost.shared_bytes;
      if (cost.shared_bytes > maximum || (found() && cost.seconds >= seconds_)) continue;
      cost = cost_of(launches_, recipe, gpu_, true);
      if (cost.shared_bytes > maximum || (found() && cost.seconds >= seconds_)) continue;
      best_ = recipe;
      best_.shared_bytes = to_int(cost.shared_bytes);
      seconds_ = cost.seconds;
    }
  }

  CountedLaunches const launches_;
  Gpu const& gpu_;
  Index rows_ = 1, columns_ = 1, outputs_, images_, inputs_, min_bytes_ = 0;
  DirectTiledRecipe best_;
  double seconds_ = 0;
};

}  // namespace

int tile_threads(DirectTiledRecipe const& recipe) {
  return (recipe.tile.threads() * recipe.images + 31) / 32 * 32;
}

DirectTileSchedule tile_schedule(SlidingForm const& sliding, DirectTiledRecipe const& recipe) {
  SlidingArguments const& window = sliding.window;
  auto const divisor = [](Index value) { return Divisor(std::max<Index>(1, value)); };
  DirectTileSchedule schedule;
  schedule.planes = planes_of(sliding, recipe);
  schedule.images = recipe.images;
  schedule.weights = to_int(weight_values(sliding, recipe));
  schedule.tiles_down = divisor(ceiling_divide(window.rows.outputs, recipe.tile.rows));
  schedule.tiles_across = divisor(ceiling_divide(window.columns.outputs, recipe.tile.columns));
  schedule.taps = divisor(Index{window.rows.taps} * window.columns.taps);
  schedule.taps_across = divisor(window.columns.taps);
  return schedule;
}

SlidingGrid tile_grid(SlidingForm const& sliding, DirectTiledRecipe const& recipe) {
  SlidingArguments const& window = sliding.window;
  return {ceiling_divide(window.images, recipe.images) *
              ceiling_divide(window.rows.outputs, recipe.tile.rows) *
              ceiling_divide(window.columns.outputs, recipe.tile.columns),
          ceiling_divide(window.outputs, recipe.tile.filters), sliding.form.groups};
}

Offer<Problem> direct_tiled(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty()) offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  if (problem.direction == ConvolutionDirection::filter) return wgrad_direct(problem, device);
  SlidingLaunches const launches = sliding_launches(problem, ConvolutionAlgorithm::direct_tiled);
  std::vector<SlidingForm> forms;
  for (auto const& launch : launches) forms.insert(forms.end(), launch.begin(), launch.end());
  for (SlidingForm const& sliding : forms) {
    offer.refusal = extent_violation({sliding.form});
    if (!offer.refusal.empty()) return offer;
  }

  ConvolutionRecipe& recipe = offer.recipe;
  recipe.algorithm = ConvolutionAlgorithm::direct_tiled;
  recipe.product = product_recipe(forms.front().form);
  recipe.launches = static_cast<int>(launches.size());
  Gpu const& gpu = device.gpu;
  bool const emulated = device.backend == Backend::emulator;
  KnownAxis const known = compiled_in(forms);
  Search search(launches, gpu);
  if (emulated) {
    search.consider(in_direct_catalogue(known, recipe.product.sum) ? known : KnownAxis{},
                    emulated_direct_threads, emulated_direct_tile);
  } else {
    constexpr int max_sums = 48;
    for (Index const threads : {64, 128, 256})
      for (int const filters : {1, 2, 3, 4, 6, 8})
        for (int const rows : {1, 2, 3, 4, 5, 6, 7, 8})
          if (filters * rows <= max_sums) search.consider(known, threads, rows, filters);
  }
  if (!search.found()) {
    offer.refusal = fmt::format(
        "one channel of the smallest tile, with {}x{} taps, needs {} bytes of shared memory; {} has {} per "
        "block",
        forms.front().window.rows.taps, forms.front().window.columns.taps, search.min_bytes(), gpu.name,
        gpu.shared_bytes_per_block);
    return offer;
  }
  DirectTiledRecipe const& own = recipe.own.emplace<DirectTiledRecipe>(search.best());
  Index const filters = tile_grid(forms.front(), own).y;
  for (auto const& launch : launches) {
    std::vector<Index> const tiles = blocks_along_x(launch, recipe);
    Index const all = std::accumulate(tiles.begin(), tiles.end(), Index{0});
    if (all > max_int || filters > 65535) {
      offer.refusal = fmt::format(
          "{} tiles for {} blocks of filters; a grid has at most 2147483647 and 65535", all, filters);
      return offer;
    }
  }
  offer.predicted_seconds = recipe.product.predicted_seconds = search.seconds();
  if (emulated) offer.workspace_bytes = emulator::widening_bytes(problem, recipe);
  DirectTile const& tile = own.tile;
  constexpr Index max_groups = 65535;  // per launch
  offer.text = fmt::format(
      "{} images of {}x{} outputs of {} filters, thread {}x{}, {} threads, {}, {} channels at a time, {} "
      "bytes of shared memory, {}",
      own.images, tile.rows, tile.columns, tile.filters, tile.thread_rows, tile.thread_filters,
      tile_threads(own), taps_text(own.rows), own.channels, own.shared_bytes,
      launches_text(launches, ceiling_divide(forms.front().form.groups, max_groups)));
  return offer;
}

}  // namespace cosmati::plan
