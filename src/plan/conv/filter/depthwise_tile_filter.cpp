// Tiles, predicted time and program of depthwise filter gradients with few pixels.
#include "src/plan/conv/filter/depthwise_tile_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/depthwise_rows.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int vector_bytes = 4, copy_bytes = 16;  // of a thread's channels, and of one copy
constexpr int sector_bytes = 32;                  // that the L2 cache sends for each copy
constexpr Index max_whole = 32;                   // columns of x

Index odd(Index value) { return value | 1; }

// Rows and columns of a unit in shared memory: of x and of dy.
struct TileExtents {
  Index image_rows, image_columns, gradient_rows, gradient_columns;
  Index pixels() const { return image_rows * image_columns + gradient_rows * gradient_columns; }
  // Rows are an odd number of pixels apart.
  Index places() const { return image_rows * odd(image_columns) + gradient_rows * odd(gradient_columns); }
};
Index runs_of(Problem const& p, DepthwiseTileShape const& shape) {
  return ceiling_divide(p.y.extent(3), shape.run);
}
TileExtents extents_of(Problem const& p, DepthwiseTileRecipe const& recipe) {
  DepthwiseTileShape const& shape = recipe.shape;
  Index const columns = runs_of(p, shape) * shape.run;
  return {Index{recipe.rows - 1} * shape.row_step + shape.row_taps,
          shape.whole > 0 ? shape.whole : (columns - 1) * shape.column_step + shape.column_taps, recipe.rows,
          columns};
}

// sizeof(SharedStorage)
Index storage_bytes(DepthwiseTileShape const& shape, int sum_bytes) {
  Index const results = Index{shape.taps()} * shape.channels;
  Index const of_warps = Index{shape.threads() / 32} * shape.column_taps * shape.channels;
  Index const of_blocks = shape.cluster > 1 ? shape.cluster * ceiling_divide(results, shape.cluster) : 1;
  return ceiling_divide((of_warps + of_blocks) * sum_bytes, 16) * 16;
}
Index shared_bytes_of(Problem const& p, DepthwiseTileRecipe const& recipe, int element_bytes) {
  return storage_bytes(recipe.shape, size_of(DataType::f32)) +
         recipe.units_of_block * extents_of(p, recipe).places() * recipe.shape.channels * element_bytes;
}

Index blocks_of(Problem const& p, DepthwiseTileShape const& shape) {
  return p.x.extent(1) / shape.channels * shape.cluster;
}

// Columns of dy that a thread multiplies at a time: those that compute the fewest nonexistent ones.
int run_of(Index columns) {
  constexpr int least = 4, most = 8;
  if (columns <= most) return to_int(std::max<Index>(1, columns));
  int best = most;
  for (int run = most; run >= least; --run)
    if (ceiling_divide(columns, run) * run < ceiling_divide(columns, best) * best) best = run;
  return best;
}

void divide_units(Problem const& p, Index row_parts, DepthwiseTileRecipe& recipe) {
  Index const rows = std::max<Index>(1, p.y.extent(2));
  recipe.rows = to_int(ceiling_divide(rows, row_parts));
  recipe.row_parts = to_int(ceiling_divide(rows, recipe.rows));
  recipe.units_of_block = to_int(ceiling_divide(p.y.extent(0) * recipe.row_parts, recipe.shape.cluster));
}

// From instructions and latencies, not fitted: 14 layers took 0.8 to 1.5 times as long on an H200
// (docs/decisions/0026).
double tile_seconds(Problem const& p, DepthwiseTileRecipe const& recipe, Gpu const& gpu) {
  constexpr double issue = 4 * 0.55;     // warp instructions per clock of a multiprocessor
  constexpr double issue_of_warp = 0.3;  // of a single warp
  constexpr double copy_instructions = 38, item_instructions = 35;
  constexpr double barriers = 900, cluster_barriers = 700;  // clocks, with the sums of warps and of blocks
  constexpr double launch_seconds = 2.2e-6, share_of_memory = 0.6, l2_bytes_per_second = 5e12;
  DepthwiseTileShape const& shape = recipe.shape;
  double const of_multiprocessor = to_double(ceiling_divide(blocks_of(p, shape), gpu.multiprocessors));
  double const warps = shape.row_taps * shape.warps;
  auto const clocks_of = [&](double instructions_of_warp) {
    return std::max(of_multiprocessor * warps * instructions_of_warp / issue,
                    instructions_of_warp / issue_of_warp);
  };
  int const of_pixel = shape.channels * size_of(p.x.type);
  Index const copies = ceiling_divide(
      recipe.units_of_block * extents_of(p, recipe).pixels() * std::max(1, of_pixel / copy_bytes),
      shape.threads());
  Index const items = ceiling_divide(recipe.units_of_block * recipe.rows * runs_of(p, shape), shape.slots());
  double words = shape.run, products = 0;  // of an item
  for (int i = 0; i < shape.columns_in(); ++i) words += has_column(i, shape.whole, shape.before) ? 1 : 0;
  for (int o = 0; o < shape.run; ++o)
    for (int s = 0; s < shape.column_taps; ++s)
      products += has_column(o * shape.column_step + s, shape.whole, shape.before) ? shape.vector : 0;
  double const of_item = item_instructions + words * (shape.vector == 1 ? 1 : 3) + products;
  double const exchanges = 2 * std::log2(32 / shape.lanes()) * shape.column_taps * shape.vector;
  double const clocks =
      clocks_of(to_double(copies) * copy_instructions + to_double(items) * of_item + exchanges) + barriers +
      (shape.cluster > 1 ? cluster_barriers : 0);
  double const bytes = to_double(p.x.bytes() + p.y.bytes());
  double const unused_bytes = bytes * (sector_bytes / of_pixel - 1);  // of sectors
  return launch_seconds + clocks / gpu.clock_hertz + bytes / (share_of_memory * gpu.memory_bytes_per_second) +
         unused_bytes / l2_bytes_per_second;
}

bool has_tiles(Problem const& p) {
  auto const stored = [](DataType type) { return type == DataType::tf32 ? DataType::f32 : type; };
  for (TensorDescription const* const tensor : {&p.x, &p.y}) {
    if (tensor->layout.shape.size() == 0 || tensor->layout.span() > max_int) return false;
    for (int d = 0; d < tensor->layout.rank(); ++d)
      if (tensor->layout.stride[d] > max_int) return false;
  }
  return walks_channels(p.x, p.y) && dilation_phases(p) == 1 && stored(p.x.type) == stored(p.y.type);
}

// Whether all channels are tiles of so many, copied in aligned units.
bool fits(Problem const& p, int channels, int element_bytes, int vector) {
  return p.x.extent(1) % channels == 0 && std::min(channels, copy_bytes / element_bytes) <= vector;
}

// Makes the columns constants if one run has all of them.
void fix_columns(Problem const& p, DepthwiseTileShape& shape) {
  if (p.y.extent(3) != shape.run || p.x.extent(3) > max_whole || p.pad_begin[1] > max_whole) return;
  shape.whole = to_int(p.x.extent(3)), shape.before = to_int(p.pad_begin[1]);
}

std::optional<DepthwiseTileChoice> emulated_tiles(Problem const& p, DepthwiseTileShape const& taps,
                                                  int vector, Gpu const& gpu) {
  if (p.x.extent(0) != emulated_tile_images) return {};
  for (DepthwiseTileShape const& known : emulated_tile_shapes) {
    DepthwiseTileShape shape = taps;
    shape.channels = known.channels, shape.vector = known.vector, shape.run = known.run;
    shape.warps = known.warps, shape.ragged = known.ragged;
    if (!known.ragged) fix_columns(p, shape);
    if (!(shape == known) || !fits(p, shape.channels, size_of(DataType::f32), vector)) continue;
    Index const rows = p.y.extent(2);
    DepthwiseTileChoice choice;
    choice.recipe.shape = in_clusters(shape, rows > 7 ? 4 : rows > 4 ? 2 : 1);
    divide_units(p, choice.recipe.shape.divided ? 2 : 1, choice.recipe);
    Index const shared = shared_bytes_of(p, choice.recipe, size_of(DataType::f32));
    if (shared > gpu.shared_bytes_per_block) return {};
    choice.recipe.shared_bytes = to_int(shared);
    return choice;
  }
  return {};
}

}  // namespace

std::string DepthwiseTileTraits::print() const {
  return fmt::format(
      "DepthwiseTileTraits<{}, DepthwiseTileShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}>",
      types.print(), shape.channels, shape.vector, shape.run, shape.row_taps, shape.column_taps,
      shape.row_step, shape.column_step, shape.warps, shape.cluster, shape.ragged, shape.divided, shape.early,
      shape.whole, shape.before);
}

std::string tile_text(DepthwiseTileRecipe const& recipe) {
  DepthwiseTileShape const& shape = recipe.shape;
  std::string text = fmt::format(
      "{} channels per block in shared memory, {} columns by {} channels per thread, warps for each row of taps: {}",
      shape.channels, shape.run, shape.vector, shape.warps);
  if (recipe.row_parts > 1) text += fmt::format(", {} parts of {} rows", recipe.row_parts, recipe.rows);
  if (shape.cluster > 1) text += fmt::format(", sums of clusters of {} blocks", shape.cluster);
  return text;
}

std::optional<DepthwiseTileChoice> depthwise_tiles(Problem const& p, Device const& device, int vector) {
  constexpr Index max_bytes = 48 << 10;        // of x and dy, for each multiprocessor
  constexpr double min_share_of_blocks = 0.5;  // of the multiprocessors; fewer take longer than a walk
  constexpr int max_threads = 1024, max_cluster = 8, registers = 64;
  DepthwiseTileShape shape;
  shape.row_taps = to_int(p.w.extent(2)), shape.column_taps = to_int(p.w.extent(3));
  shape.row_step = to_int(p.stride[0]), shape.column_step = to_int(p.stride[1]);
  Gpu const& gpu = device.gpu;
  if (!has_tiles(p)) return {};
  if (device.backend == Backend::emulator) return emulated_tiles(p, shape, vector, gpu);
  int const size = size_of(p.x.type);
  if (vector * size < vector_bytes || !features_of(gpu).clusters ||
      static_cast<Index>(p.x.bytes() + p.y.bytes()) > max_bytes * gpu.multiprocessors)
    return {};
  shape.vector = vector_bytes / size;
  shape.run = run_of(p.y.extent(3));
  shape.ragged = p.y.extent(3) % shape.run != 0;
  fix_columns(p, shape);
  shape.early = true;
  std::optional<DepthwiseTileChoice> best;
  for (shape.cluster = 1; shape.cluster <= max_cluster; shape.cluster *= 2)
    for (int const bytes : {copy_bytes, sector_bytes, copy_bytes / 2}) {
      shape.channels = bytes / size;
      if (!fits(p, shape.channels, size, vector) ||
          to_double(blocks_of(p, shape)) < min_share_of_blocks * gpu.multiprocessors)
        continue;
      for (shape.warps = 1; shape.row_taps * shape.warps * 32 <= max_threads; ++shape.warps)
        for (Index const parts : {1, 2, 4, 8}) {
          DepthwiseTileChoice choice;
          choice.recipe.shape = shape;
          divide_units(p, parts, choice.recipe);
          choice.recipe.shape.divided = choice.recipe.row_parts > 1;
          Index const shared = shared_bytes_of(p, choice.recipe, size);
          if (parts > shape.cluster || shared > gpu.shared_bytes_per_block) continue;
          int const resident = resident_blocks(gpu, shape.threads(), registers, to_int(shared));
          if (blocks_of(p, shape) > Index{resident} * gpu.multiprocessors) continue;
          choice.recipe.shared_bytes = to_int(shared);
          choice.seconds = tile_seconds(p, choice.recipe, gpu);
          // The prediction is not precise enough for larger clusters that save little.
          bool const larger = best && shape.cluster > best->recipe.shape.cluster;
          if (!best || choice.seconds < (larger ? 0.95 : 1.0) * best->seconds) best = choice;
        }
    }
  return best;
}

program::Program depthwise_tile_program(Plan<Problem> const& plan) {
  Problem const& p = plan.problem;
  auto const& recipe = std::get<DepthwiseTileRecipe>(plan.recipe.own);
  DepthwiseTileShape const& shape = recipe.shape;
  ConvolutionProgram made(plan);
  ConvolutionForm const form = made.in_kernel(with_all_channels(forms_of(p).front()));
  KernelTypes const types = as_f32(made.types_of(form));
  auto const shared = static_cast<unsigned>(recipe.shared_bytes);
  auto const threads = static_cast<unsigned>(shape.threads());
  program::KernelSpec const kernel{
      .headers = {"conv/depthwise/depthwise_tile_filter.h"},
      .entry = "depthwise_tile_filter_kernel",
      .traits = DepthwiseTileTraits{types, shape}.print(),
      .asserted = {{"ComposedTraits::threads", threads},
                   {"sizeof(ComposedTraits::SharedStorage)",
                    static_cast<std::size_t>(storage_bytes(shape, size_of(form.sum)))}},
      .starts_early = shape.early,
      .threads = threads,
      .shared_bytes = shared};
  auto const divisor = [](Index value) { return Divisor(std::max<Index>(1, value)); };
  auto const pixels_of = [&](TensorDescription const& tensor, Index rows, Index columns) {
    auto const& stride = tensor.layout.stride;
    DepthwiseTilePixels pixels;
    pixels.image_stride = to_int(stride[0]), pixels.row_stride = to_int(stride[2]);
    pixels.column_stride = to_int(stride[3]);
    pixels.height = to_int(tensor.extent(2)), pixels.width = to_int(tensor.extent(3));
    pixels.rows = divisor(rows), pixels.columns = divisor(columns);
    pixels.pitch = to_int(odd(columns));
    return pixels;
  };
  TileExtents const extents = extents_of(p, recipe);
  DepthwiseTileArguments all;
  all.image = pixels_of(p.x, extents.image_rows, extents.image_columns);
  all.gradient = pixels_of(p.y, extents.gradient_rows, extents.gradient_columns);
  all.pad_row = to_int(p.pad_begin[0]), all.pad_column = to_int(p.pad_begin[1]);
  all.row_parts = divisor(recipe.row_parts);
  all.units = to_int(p.y.extent(0) * recipe.row_parts);
  all.units_of_block = recipe.units_of_block;
  Index const rows = Index{recipe.units_of_block} * recipe.rows;
  all.block_rows = divisor(rows);
  all.items = to_int(rows * runs_of(p, shape));
  all.tap_row_number = to_int(tap_digit(form, 'r').number);
  all.tap_column_number = to_int(tap_digit(form, 's').number);
  all.swapped = form.image_is_a;
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = DepthwiseTileParameters<Epilogue, Destination>;
    std::size_t const sums = made.add_kernel<Parameters>(kernel, form);
    if (form.rows() == 0 || form.columns() == 0) return;
    auto const fill = [form, all, x = made.image, dy = made.filter](program::Run const& run, Parameters& to) {
      to.all = all;
      to.all.image.data = x.of(run), to.all.gradient.data = dy.of(run);
      fill_destination(to.d, form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, form, run);
    };
    made.launch<Parameters>(sums, {blocks_of(p, shape)}, fill);
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
