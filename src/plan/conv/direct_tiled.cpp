// Which tile the tiled direct convolution takes, and what fits into shared memory.
#include <fmt/format.h>

#include <algorithm>

#include "src/backend/emulator/convolution.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr DirectTile tiles[] = {{16, 16, 16, 4, 8}, {8, 16, 32, 4, 8}, {8, 8, 64, 4, 8}};
constexpr DirectTile emulated_tile{8, 8, 16, 4, 8};

Index parts(Index extent, Index of) { return (extent + of - 1) / of; }

Index halo(WindowAxis const& axis, int outputs) {
  return Index{outputs - 1} * std::abs(axis.output_step) +
         std::max(0, axis.taps - 1) * Index{std::abs(axis.tap_step)} + 1;
}

Index values_in_shared(SlidingForm const& sliding, DirectTile const& tile) {  // of one channel
  SlidingArguments const& window = sliding.window;
  return halo(window.rows, tile.rows) * halo(window.columns, tile.columns) +
         Index{window.rows.taps} * window.columns.taps * tile.filters;
}

// Multiply-adds with those that only fill up tiles.
double padded_products(SlidingForm const& sliding, DirectTile const& tile) {
  SlidingArguments const& window = sliding.window;
  return static_cast<double>(window.images * parts(window.rows.outputs, tile.rows) * tile.rows *
                             parts(window.columns.outputs, tile.columns) * tile.columns *
                             parts(window.outputs, tile.filters) * tile.filters) *
         static_cast<double>(sliding.form.depth() * sliding.form.groups);
}

double rate(DataType sum, Gpu const& gpu) {
  return sum == DataType::f64 ? gpu.fma_f64 : sum == DataType::s32 ? gpu.fma_f32 / 2.0 : gpu.fma_f32;
}

}  // namespace

DirectTileSchedule tile_schedule(SlidingForm const& sliding, SlidingRecipe const& recipe) {
  SlidingArguments const& window = sliding.window;
  DirectTileSchedule schedule;
  Index const down = halo(window.rows, recipe.tile.rows), across = halo(window.columns, recipe.tile.columns);
  schedule.channels = recipe.channels;
  schedule.halo_columns = Divisor(across);
  schedule.halo = Divisor(down * across);
  schedule.tiles_down = Divisor(std::max<Index>(1, parts(window.rows.outputs, recipe.tile.rows)));
  schedule.tiles_across = Divisor(std::max<Index>(1, parts(window.columns.outputs, recipe.tile.columns)));
  schedule.channels_last = window.image_input == 1 && window.columns.image_stride != 1;
  schedule.channels_at_a_time = Divisor(recipe.channels);
  return schedule;
}

SlidingGrid tile_grid(SlidingForm const& sliding, SlidingRecipe const& recipe) {
  SlidingArguments const& window = sliding.window;
  return {window.images * parts(window.rows.outputs, recipe.tile.rows) *
              parts(window.columns.outputs, recipe.tile.columns),
          parts(window.outputs, recipe.tile.filters), sliding.form.groups};
}

namespace {

double predicted(std::vector<SlidingForm> const& forms, SlidingRecipe const& recipe, double products,
                 Gpu const& gpu) {
  // 6 accesses of shared memory for 32 multiply-adds, and loads that no arithmetic of the block hides.
  constexpr double launch_seconds = 3e-6, load_seconds = 0.8e-6, share_of_rate = 0.35;
  constexpr Index blocks_resident = 2;
  double loads = 0;
  for (SlidingForm const& sliding : forms) {
    SlidingGrid const grid = tile_grid(sliding, recipe);
    loads += static_cast<double>(parts(grid.x * grid.y * grid.z, blocks_resident * gpu.multiprocessors) *
                                 parts(sliding.window.inputs, recipe.channels));
  }
  double const multiply =
      products / (share_of_rate * rate(forms.front().form.sum, gpu) * gpu.multiprocessors * gpu.clock_hertz);
  return launch_seconds * static_cast<double>(forms.size()) + std::max(multiply, loads * load_seconds);
}

}  // namespace

Offer<Problem> direct_tiled(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty() && !options.policy.empty())
    offer.refusal = "takes no policy; --policy " + options.policy + " was asked for";
  if (offer.refusal.empty() && problem.direction == ConvolutionDirection::filter)
    offer.refusal =
        "a filter's gradient has as few outputs as the filter and sums over all images: it has no tiles; "
        "implicit_gemm splits such sums";
  if (!offer.refusal.empty()) return offer;
  auto const forms = sliding_forms(problem, ConvolutionAlgorithm::direct_tiled);
  for (SlidingForm const& sliding : forms) {
    offer.refusal = extent_violation({sliding.form});
    if (!offer.refusal.empty()) return offer;
  }

  ConvolutionRecipe& recipe = offer.recipe;
  recipe.algorithm = ConvolutionAlgorithm::direct_tiled;
  recipe.product = product_recipe(forms.front().form);
  recipe.launches = static_cast<int>(forms.size());
  Gpu const& gpu = device.gpu;
  int const value_bytes = size_of(recipe.product.sum);
  // Two blocks on a multiprocessor if that is possible; each channel more saves barriers.
  Index const most = gpu.shared_bytes_per_block,
              half = std::min<Index>(most, gpu.shared_bytes_per_multiprocessor / 2 - 1024);
  double best = 0;
  Index least_bytes = 0;
  bool const emulated = device.backend == Backend::emulator;
  for (DirectTile const& tile : emulated ? std::vector<DirectTile>{emulated_tile}
                                         : std::vector<DirectTile>(std::begin(tiles), std::end(tiles))) {
    Index values = 0;
    double products = 0;
    for (SlidingForm const& sliding : forms) {
      values = std::max(values, values_in_shared(sliding, tile));
      products += padded_products(sliding, tile);
    }
    Index const bytes = values * value_bytes;
    if (least_bytes == 0 || bytes < least_bytes) least_bytes = bytes;
    if (bytes > most) continue;
    Index const inputs = std::max(1, forms.front().window.inputs);
    Index const channels = std::max<Index>(1, std::min({Index{16}, inputs, half / bytes}));
    SlidingRecipe candidate;
    candidate.tile = tile;
    candidate.channels = static_cast<int>(channels);
    candidate.shared_bytes = static_cast<int>(channels * bytes);
    double const seconds = predicted(forms, candidate, products, gpu);
    if (recipe.sliding.shared_bytes > 0 && seconds >= best) continue;
    best = seconds;
    recipe.sliding = candidate;
  }
  if (recipe.sliding.shared_bytes == 0) {
    offer.refusal = fmt::format(
        "one channel of the smallest tile, with {}x{} taps, needs {} bytes of shared memory; {} has {} a "
        "block",
        forms.front().window.rows.taps, forms.front().window.columns.taps, least_bytes, gpu.name, most);
    return offer;
  }
  SlidingGrid const grid = tile_grid(forms.front(), recipe.sliding);
  if (grid.x > 0x7fffffff || grid.y > 65535) {
    offer.refusal = fmt::format("{} tiles for {} blocks of filters; a grid has at most 2147483647 and 65535",
                                grid.x, grid.y);
    return offer;
  }
  offer.predicted_seconds = recipe.product.predicted_seconds = best;
  if (emulated) offer.workspace_bytes = emulator::widening_bytes(problem, recipe);
  DirectTile const& tile = recipe.sliding.tile;
  offer.text = fmt::format(
      "{}x{} outputs of {} filters, thread {}x{}, {} channels of {} bytes at a time, {} launches", tile.rows,
      tile.columns, tile.filters, tile.thread_rows, tile.thread_filters, recipe.sliding.channels,
      recipe.sliding.shared_bytes / recipe.sliding.channels, recipe.launches);
  return offer;
}

}  // namespace cosmati::plan
