// Shapes, parts, predicted time and program of depthwise_rows for filter gradients.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/depthwise_rows.h"
#include "src/plan/conv/filter/depthwise_tile_filter.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int results_of_block = 32;  // of the kernel that adds the parts

int taps_of(DepthwiseRowsShape const& shape) { return shape.row_taps * shape.column_taps; }

// The rows and columns of dy in the longest phase.
Index rows_of(Problem const& p) { return ceiling_divide(p.y.extent(2), dilation_of(p, 0)); }
Index columns_of(Problem const& p) { return ceiling_divide(p.y.extent(3), dilation_of(p, 1)); }

Index tiles_of(Problem const& p, DepthwiseRowsFilterRecipe const& recipe) {
  return ceiling_divide(p.x.extent(1) / recipe.shape.vector, recipe.lanes);
}
Index items_of(Problem const& p, DepthwiseRowsFilterRecipe const& recipe) {
  return p.y.extent(0) * dilation_phases(p) * ceiling_divide(columns_of(p), recipe.shape.run) *
         ceiling_divide(rows_of(p), recipe.groups_of_part);
}

// Vectors of channels per block, chosen to leave the fewest threads idle.
int lanes_of(Index vectors) {
  int best = 1;
  double share = 0;
  for (int lanes = 8; lanes <= 64; ++lanes) {
    double const own = to_double(vectors) / to_double(ceiling_divide(vectors, lanes) * lanes) *
                       (depthwise_rows_threads / lanes * lanes) / depthwise_rows_threads;
    if (own > share + 0.01) best = lanes, share = own;
  }
  return best;
}

ConvolutionForm form_of(Problem const& problem) { return with_all_channels(forms_of(problem).front()); }

DepthwiseRowsFilterArguments arguments_of(Problem const& p) {
  DepthwiseRowsFilterArguments all;
  all.height = to_int(p.x.extent(2)), all.width = to_int(p.x.extent(3));
  all.row_origin = -to_int(p.pad_begin[0]), all.column_origin = -to_int(p.pad_begin[1]);
  all.gradient_width = to_int(p.y.extent(3));
  all.pad_row = to_int(p.pad_begin[0]), all.pad_column = to_int(p.pad_begin[1]);
  auto const &x = p.x.layout.stride, &dy = p.y.layout.stride;
  all.image_batch = x[0], all.image_channel = x[1], all.image_row = x[2], all.image_column = to_int(x[3]);
  all.gradient_image = dy[0], all.gradient_channel = dy[1], all.gradient_row = dy[2];
  all.gradient_column = to_int(dy[3]);
  return all;
}

DepthwiseRowsFilterSchedule schedule_of(Problem const& p, DepthwiseRowsFilterRecipe const& recipe) {
  auto const divisor = [](Index value) { return Divisor(std::max<Index>(1, value)); };
  DepthwiseRowsFilterSchedule schedule;
  schedule.tiles = divisor(tiles_of(p, recipe));
  schedule.lanes = divisor(recipe.lanes);
  schedule.runs = divisor(ceiling_divide(columns_of(p), recipe.shape.run));
  schedule.row_parts = divisor(ceiling_divide(rows_of(p), recipe.groups_of_part));
  schedule.channels = to_int(p.x.extent(1));
  schedule.slots = recipe.slots;
  schedule.items = to_int(items_of(p, recipe));
  schedule.items_at_a_time = recipe.slots * recipe.parts;
  schedule.parts = recipe.parts;
  schedule.groups = to_int(p.y.extent(2));  // of all phases
  schedule.row_phases = Divisor(dilation_of(p, 0)), schedule.column_phases = Divisor(dilation_of(p, 1));
  schedule.groups_of_part = recipe.groups_of_part;
  return schedule;
}

// Divides `rows` rows into parts with `threads` threads each, enough to fill half of the GPU; returns the
// number of rows of a part: at least `minimum`, or 1 if `may_be_short`, they fill less than a fourth, and a
// resident thread has at most three single rows. On an H200 this took 0.9 of the time with up to 2.8 rows,
// and the same time with 3.4.
Index rows_of_filter_part(Index rows, Index minimum, Index threads, DepthwiseRowsShape const& shape,
                          Gpu const& gpu, bool may_be_short) {
  constexpr Index most_rows = 3;
  Index const resident = Index{shape.blocks} * depthwise_rows_threads * gpu.multiprocessors;
  if (may_be_short && threads < resident / 4 && threads * rows <= most_rows * resident) return 1;
  Index parts = 1;
  while (threads * parts < resident / 2 && ceiling_divide(rows, 2 * parts) >= minimum) parts *= 2;
  return std::max<Index>(1, ceiling_divide(rows, parts));
}

// Predicted from instructions and latencies, for few threads, whose latencies nothing hides; rows_seconds()
// is for many. Of four measurements of an H200, two are 2 and 4 % longer, and two 29 and 75 %.
double walk_seconds(Problem const& p, DepthwiseRowsFilterRecipe const& recipe, Gpu const& gpu) {
  constexpr double issue = 4 * 0.5, issue_of_warp = 0.3;  // warp instructions per clock, as for tiles
  constexpr double load_instructions = 5, conversion_instructions = 2, round_trip = 1300, row_latency = 600;
  constexpr double read_clocks = 25, pass_clocks = 150;  // of the sums of a block
  constexpr double launch_seconds = 2.2e-6, second_launch_seconds = 2e-6, share_of_memory = 0.6;
  DepthwiseRowsShape const& shape = recipe.shape;
  double const rows = recipe.groups_of_part, taps = taps_of(shape);
  double const loads = ((rows - 1) * shape.row_step + shape.row_taps) * shape.columns_in() + rows * shape.run;
  double const of_item = loads * (load_instructions + conversion_instructions * shape.vector) +
                         rows * shape.run * taps * shape.vector;
  double const items = to_double(ceiling_divide(items_of(p, recipe), Index{recipe.slots} * recipe.parts));
  double const warps = to_double(ceiling_divide(tiles_of(p, recipe) * recipe.parts, gpu.multiprocessors)) *
                       depthwise_rows_threads / 32;
  double const passes = std::ceil(taps * shape.vector * recipe.lanes / depthwise_rows_threads);
  double const waiting = shape.alone ? (items - 1) * round_trip : items * rows * row_latency;
  double const clocks = std::max(warps * items * of_item / issue, items * of_item / issue_of_warp) + waiting +
                        passes * (recipe.slots * read_clocks + pass_clocks);
  return launch_seconds + (recipe.parts > 1 ? second_launch_seconds : 0) + clocks / gpu.clock_hertz +
         to_double(p.x.bytes() + p.y.bytes()) / (share_of_memory * gpu.memory_bytes_per_second);
}

// The prediction of a walk omits latencies. It remains that of the offer where it is shorter, as the order of
// the kernels has been measured with it.
void use_tiles(Problem const& problem, DepthwiseTileChoice const& tiles, bool emulated,
               Offer<Problem>& offer) {
  ConvolutionRecipe& recipe = offer.recipe;
  recipe.own = tiles.recipe;
  if (emulated) offer.workspace_bytes = emulator::widening_bytes(problem, recipe);
  offer.predicted_seconds = emulated ? tiles.seconds : std::min(offer.predicted_seconds, tiles.seconds);
  recipe.product.predicted_seconds = offer.predicted_seconds;
  offer.text = tile_text(tiles.recipe);
}

}  // namespace

std::string DepthwiseRowsFilterTraits::print() const {
  return fmt::format("DepthwiseRowsFilterTraits<{}, {}, {}>", types.print(), shape_text(shape), ragged);
}

Offer<Problem> depthwise_rows_filter(Problem const& problem, Device const& device) {
  Offer<Problem> offer;
  ConvolutionForm const form = form_of(problem);
  offer.refusal = extent_violation({form});
  if (!offer.refusal.empty()) return offer;
  bool const emulated = device.backend == Backend::emulator, last = walks_channels(problem.x, problem.y);
  int const vector = last ? std::min(channel_vector(problem.x), channel_vector(problem.y)) : 1;
  ConvolutionRecipe& recipe = offer.recipe;
  recipe.algorithm = ConvolutionAlgorithm::depthwise_rows;
  recipe.product = product_recipe(form);
  std::optional<DepthwiseTileChoice> const in_tiles = depthwise_tiles(problem, device, vector);
  if (in_tiles && emulated) {
    use_tiles(problem, *in_tiles, true, offer);
    return offer;
  }
  DepthwiseRowsFilterRecipe& rows = recipe.own.emplace<DepthwiseRowsFilterRecipe>();
  std::optional<DepthwiseRowsShape> const shape = rows_shape(problem, last, vector, emulated);
  if (!shape) {
    offer.refusal = no_emulated_shape;
    return offer;
  }
  rows.shape = *shape;
  rows.ragged = emulated || problem.y.extent(3) % (shape->run * dilation_of(problem, 1)) != 0;
  rows.lanes = last ? lanes_of(problem.x.extent(1) / shape->vector) : 1;
  rows.slots = depthwise_rows_threads / rows.lanes;
  rows.groups_of_part = to_int(std::max<Index>(1, rows_of(problem)));
  Index const vectors = problem.x.extent(1) / shape->vector, tiles = tiles_of(problem, rows);
  bool const few = last && (!emulated || problem.x.extent(0) == 1);  // emulated, only single images
  rows.groups_of_part =
      emulated && few
          ? 1
          : to_int(rows_of_filter_part(rows_of(problem), 2 * shape->live_groups(),
                                       items_of(problem, rows) * vectors, *shape, device.gpu, few));
  if (is_alone(rows.shape, rows.groups_of_part, few)) compute_alone(rows.shape);
  // Uses as many blocks as are resident, so that each adds as many sums as possible before the second kernel.
  Index const items = items_of(problem, rows),
              wanted = Index{rows.shape.blocks} * device.gpu.multiprocessors / tiles;
  rows.parts = to_int(std::clamp<Index>(wanted, 1, std::max<Index>(1, ceiling_divide(items, rows.slots))));
  if (items > 0x3fffffff || tiles * rows.parts > max_int) {
    offer.refusal = fmt::format("{} items of {} tiles of channels; at most 2^30 items, and 2^31 - 1 blocks",
                                items, tiles);
    return offer;
  }
  constexpr double share_of_walk = 0.9;  // that tiles must be predicted to take at most
  double const launches_seconds = rows.parts > 1 ? 5e-6 : 3e-6;
  offer.predicted_seconds = launches_seconds + rows_seconds(problem, device.gpu);
  if (in_tiles && in_tiles->seconds < share_of_walk * walk_seconds(problem, rows, device.gpu)) {
    use_tiles(problem, *in_tiles, false, offer);
    return offer;
  }
  int const sum_bytes = size_of(recipe.product.sum), taps = taps_of(rows.shape);
  rows.shared_bytes = (taps * rows.shape.vector + 1) * depthwise_rows_threads * sum_bytes;
  recipe.product.predicted_seconds = offer.predicted_seconds;
  recipe.product.partial_bytes =
      rows.parts > 1 ? static_cast<std::size_t>(rows.parts * problem.x.extent(1) * taps * sum_bytes) : 0;
  offer.workspace_bytes = emulator::with_operands(recipe.product.partial_bytes,
                                                  emulated ? emulator::widening_bytes(problem, recipe) : 0);
  offer.text = fmt::format("{} columns by {} channels per thread, down {} rows, {} by {} threads per block",
                           rows.shape.run, rows.shape.vector, rows.groups_of_part, rows.lanes, rows.slots);
  if (rows.parts > 1) offer.text += fmt::format(", {} partial sums added in a fixed order", rows.parts);
  offer.text += phases_text(problem);
  return offer;
}

program::Program depthwise_rows_filter_program(Plan<Problem> const& plan) {
  if (std::holds_alternative<DepthwiseTileRecipe>(plan.recipe.own)) return depthwise_tile_program(plan);
  Problem const& problem = plan.problem;
  DepthwiseRowsFilterRecipe const& recipe = std::get<DepthwiseRowsFilterRecipe>(plan.recipe.own);
  ConvolutionProgram made(plan);
  ConvolutionForm const form = made.in_kernel(form_of(problem));
  KernelTypes const types = as_f32(made.types_of(form));
  auto const shared = static_cast<unsigned>(recipe.shared_bytes);
  program::KernelSpec kernel{.headers = {"conv/depthwise/depthwise_rows_filter.h"},
                             .entry = "depthwise_rows_filter_kernel",
                             .traits = DepthwiseRowsFilterTraits{types, recipe.shape, recipe.ragged}.print(),
                             .asserted = {{"ComposedTraits::threads", depthwise_rows_threads},
                                          {"sizeof(ComposedTraits::SharedStorage)", shared}},
                             .threads = depthwise_rows_threads,
                             .shared_bytes = shared};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = DepthwiseRowsFilterParameters<Epilogue, Destination>;
    std::size_t const sums = made.add_kernel<Parameters>(kernel, form);
    std::optional<std::size_t> parts;
    if (recipe.parts > 1) {
      kernel.entry = "depthwise_rows_filter_sum_kernel";
      kernel.shared_bytes = static_cast<unsigned>(depthwise_rows_threads * size_of(form.sum));
      parts = made.add_kernel<Parameters>(kernel, form);
    }
    if (form.rows() == 0 || form.columns() == 0) return;
    auto const tap = [&](char letter) {
      return to_int(find_digit(letter, form.image_outer(), form.image().arguments.outer).number);
    };
    auto const fill = [form, all = arguments_of(problem), schedule = schedule_of(problem, recipe),
                       row = tap('r'), column = tap('s'), x = made.image,
                       dy = made.filter](program::Run const& run, Parameters& to) {
      to.all = all;
      to.all.image = x.of(run);
      to.all.gradient = dy.of(run);
      to.partials = run.workspace;
      to.tap_row_number = row, to.tap_column_number = column;
      to.swapped = form.image_is_a;
      to.schedule = schedule;
      fill_destination(to.d, form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, form, run);
    };
    Index const results = problem.x.extent(1) * taps_of(recipe.shape);
    made.launch<Parameters>(sums, {tiles_of(problem, recipe) * recipe.parts}, fill);
    if (parts) made.launch<Parameters>(*parts, {ceiling_divide(results, results_of_block)}, fill);
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
