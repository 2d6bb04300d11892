// Shapes, predicted time and program of depthwise_rows, forward and data gradient.
#include "src/plan/conv/depthwise_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

bool is_data(Problem const& problem) { return problem.direction == ConvolutionDirection::data; }
TensorDescription const& image_of(Problem const& problem) { return is_data(problem) ? problem.y : problem.x; }
TensorDescription const& result_of(Problem const& problem) {
  return is_data(problem) ? problem.x : problem.y;
}

bool is_known(DataType type) {
  return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16;
}

std::string depthwise_rows_violation(Problem const& p, Device const& device, PlanOptions const& options) {
  std::string sentence = problem_violation(p, device.backend);
  if (!sentence.empty()) return sentence;
  if (!options.policy.empty()) return options.policy.refusal();
  Index const channels = p.x.extent(1);
  if (channels != p.groups || p.y.extent(1) != channels || channels < 1)
    return fmt::format(
        "{} channels and {} filters in {} groups; each channel must form its own group, with one filter",
        channels, p.y.extent(1), p.groups);
  TensorDescription const& result = p.result();
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y}) {
    if (!is_known(tensor->type) && (tensor == &result || tensor->type != DataType::tf32))
      return fmt::format("{} operands; valid types: f32, f16, bf16, and tf32 for inputs",
                         name_of(tensor->type));
    for (int d = 0; d < tensor->layout.rank(); ++d)
      if (tensor->layout.stride[d] < 0) return "a stride is negative";
  }
  for (int i : {0, 1}) {
    Index const taps = p.w.extent(2 + i);
    constexpr Index max_taps = 7, max_stride = 2;
    if (taps < 1 || taps > max_taps)
      return fmt::format("{} taps; threads keep 1 to {} per direction", taps, max_taps);
    if (p.stride[i] > max_stride) return fmt::format("stride {}; at most {}", p.stride[i], max_stride);
    if (dilation_of(p, i) != 1 && std::max(p.stride[0], p.stride[1]) > 1)
      return fmt::format("dilation {} with stride {}; only one of them may exceed 1", p.dilation[i],
                         std::max(p.stride[0], p.stride[1]));
  }
  constexpr Index max_stride = Index{1} << 26;  // stride of a column: offsets of the columns of a run fit in
                                                // 32 bits
  for (TensorDescription const* tensor : {&p.x, &p.y})
    if (Index const stride = tensor->layout.stride[3] * dilation_of(p, 1); stride > max_stride)
      return fmt::format("columns are {} elements apart; at most {}", stride, max_stride);
  return {};
}

// The number of groups of rows, and of runs of a row.
struct Extents {
  Index groups, runs;
};
Extents extents_of(Problem const& p, DepthwiseRowsShape const& shape) {
  if (shape.dilated) {  // the extents of the longest phase
    TensorDescription const& result = result_of(p);
    return {ceiling_divide(result.extent(2), dilation_of(p, 0)),
            ceiling_divide(ceiling_divide(result.extent(3), dilation_of(p, 1)), shape.run)};
  }
  if (!shape.transposed) return {p.y.extent(2), ceiling_divide(p.y.extent(3), shape.run)};
  return {ceiling_divide(p.x.extent(2) + p.pad_begin[0] % shape.row_step, shape.row_step),
          ceiling_divide(p.x.extent(3) + p.pad_begin[1] % shape.column_step, shape.run)};
}
Index threads_of(Problem const& p, DepthwiseRowsRecipe const& recipe) {
  Extents const extents = extents_of(p, recipe.shape);
  return p.x.extent(0) * dilation_phases(p) * (p.x.extent(1) / recipe.shape.vector) * extents.runs *
         ceiling_divide(extents.groups, recipe.groups_of_part);
}

DepthwiseRowsArguments arguments_of(Problem const& p, ConvolutionForm const& form,
                                    DepthwiseRowsShape const& shape) {
  TensorDescription const &image = image_of(p), &result = result_of(p);
  DepthwiseRowsArguments all;
  all.height = to_int(image.extent(2)), all.width = to_int(image.extent(3));
  all.result_height = to_int(result.extent(2)), all.result_width = to_int(result.extent(3));
  int const pad_rows = to_int(p.pad_begin[0]), pad_columns = to_int(p.pad_begin[1]);
  all.pad_row = pad_rows, all.pad_column = pad_columns;
  if (shape.transposed) {
    // The first group and run begin at or before position 0, the position of the first tap of some element of
    // dy.
    all.row_origin = pad_rows / shape.row_step - shape.live_groups() + 1;
    all.column_origin = pad_columns / shape.column_step - shape.columns_before();
    all.result_row_origin = -(pad_rows % shape.row_step);
    all.result_column_origin = -(pad_columns % shape.column_step);
  } else {
    all.row_origin = -pad_rows, all.column_origin = -pad_columns;
  }
  auto const& from = image.layout.stride;
  all.image_batch = from[0], all.image_channel = from[1], all.image_row = from[2];
  all.image_column = to_int(from[3]);
  auto const& to = result.layout.stride;
  all.result_image = to[0], all.result_channel = to[1], all.result_row = to[2];
  all.result_column = to_int(to[3]);
  auto const& filter = p.w.layout.stride;
  all.filter_channel = filter[0], all.filter_row = filter[2], all.filter_column = filter[3];
  auto const number_of = [&](char letter) {
    return to_int(find_digit(letter, form.image_outer(), form.image().arguments.outer).number);
  };
  all.image_number = number_of('n'), all.row_number = number_of('p'), all.column_number = number_of('q');
  all.swapped = !form.image_is_a;
  return all;
}

DepthwiseRowsSchedule schedule_of(Problem const& p, DepthwiseRowsRecipe const& recipe) {
  DepthwiseRowsShape const& shape = recipe.shape;
  Extents const extents = extents_of(p, shape);
  auto const divisor = [](Index value) { return Divisor(std::max<Index>(1, value)); };
  Divisor const channels = divisor(p.x.extent(1) / shape.vector), runs = divisor(extents.runs),
                parts = divisor(ceiling_divide(extents.groups, recipe.groups_of_part));
  DepthwiseRowsSchedule schedule;
  schedule.first = shape.channels_last ? channels : runs;
  schedule.second = shape.channels_last ? runs : parts;
  schedule.third = shape.channels_last ? parts : channels;
  schedule.threads = to_int(threads_of(p, recipe));
  schedule.groups = to_int(extents.groups);
  schedule.row_phases = Divisor(dilation_of(p, 0)), schedule.column_phases = Divisor(dilation_of(p, 1));
  schedule.groups_of_part = recipe.groups_of_part;
  return schedule;
}

// Whether the filters of adjacent channels follow each other, in aligned vectors.
bool is_packed(TensorDescription const& w, int vector) {
  auto const& stride = w.layout.stride;
  Index const rows = w.extent(2), columns = w.extent(3);
  int const bytes = vector * size_of(w.type);
  return bytes <= 16 && std::max(w.alignment, size_of(w.type)) % bytes == 0 &&
         (columns == 1 || stride[3] == 1) && (rows == 1 || stride[2] == columns) &&
         stride[0] == rows * columns;
}

}  // namespace

Index dilation_of(Problem const& p, int axis) { return p.w.extent(2 + axis) > 1 ? p.dilation[axis] : 1; }
Index dilation_phases(Problem const& p) { return dilation_of(p, 0) * dilation_of(p, 1); }

int channel_vector(TensorDescription const& images) {
  int const size = size_of(images.type);
  auto const fits = [&](int vector) {
    return images.extent(1) % vector == 0 && std::max(images.alignment, size) % (vector * size) == 0 &&
           pixels_begin_at(images, vector * size);
  };
  int vector = 1;
  while (images.layout.stride[1] == 1 && 2 * vector * size <= 16 && fits(2 * vector)) vector *= 2;
  return vector;
}

bool walks_channels(TensorDescription const& image, TensorDescription const& result) {
  auto const contiguous = [](TensorDescription const& tensor) {
    return tensor.layout.stride[1] == 1 && (tensor.extent(1) > 1 || tensor.layout.stride[3] != 1);
  };
  return contiguous(image) && contiguous(result);
}

namespace {

// The channels and columns of a thread, and the resident blocks of a multiprocessor (DepthwiseRowsShape).
struct RowsChoice {
  int vector = 1, run = 1;
  bool ahead = false, unrolled = false;
  int blocks = 1;
};

// The fastest of the shapes measured on an H100, and for 5x5 taps and runs of eight on an H200
// (docs/decisions/0026), by the larger number of taps and the larger stride of both directions, and the
// columns of results.
RowsChoice channels_choice(ConvolutionDirection direction, Index taps, Index stride, Index columns) {
  bool const data = direction == ConvolutionDirection::data;
  bool const sevens = columns % 7 == 0;
  if (direction == ConvolutionDirection::filter) {
    if (taps <= 3 && stride == 1)
      return sevens && columns <= 28 ? RowsChoice{.vector = 2, .run = 7, .blocks = 4}
                                     : RowsChoice{.vector = 4, .run = 4, .blocks = 4};
    if (taps <= 3)
      return columns <= 7 ? RowsChoice{.vector = 4, .run = 1, .blocks = 5}
                          : RowsChoice{.vector = 4, .run = 2, .blocks = 4};
    if (taps <= 5 && stride == 1)
      return sevens && columns <= 14 ? RowsChoice{.vector = 2, .run = 7, .blocks = 3}
                                     : RowsChoice{.vector = 2, .run = 4, .blocks = 4};
    if (taps <= 5) return {.vector = 2, .run = 2, .blocks = 4};
    return stride == 1 ? RowsChoice{.vector = 1, .run = 7, .blocks = 3}
                       : RowsChoice{.vector = 1, .run = 4, .blocks = 3};
  }
  if (taps <= 3 && stride == 1) return {.vector = 4, .run = 4, .unrolled = true, .blocks = 4};
  if (taps <= 3 && data) return {.vector = 4, .run = 4, .blocks = 5};
  if (taps <= 3)
    return columns <= 14 ? RowsChoice{.vector = 4, .run = 1, .ahead = true, .blocks = 6}
                         : RowsChoice{.vector = 4, .run = 4, .blocks = 4};
  if (taps <= 5 && stride == 1 && columns % 14 == 0) return {.vector = 1, .run = 14, .blocks = 3};
  if (taps <= 5 && stride == 1 && columns <= 7) return {.vector = 2, .run = 7, .blocks = 3};
  if (taps <= 5) return {.vector = 2, .run = 4, .blocks = 4};
  // Runs of eight need more registers, which pays where sevens compute 14 columns for 8, or 21 for 16.
  auto const computed = [&](Index run) { return ceiling_divide(columns, run) * run; };
  if (stride == 1 && columns <= 16 && computed(8) < computed(7)) return {.vector = 1, .run = 8, .blocks = 3};
  if (stride == 1) return {.vector = 1, .run = 7, .blocks = 4};
  return data ? RowsChoice{.vector = 1, .run = 8, .blocks = 3}
              : RowsChoice{.vector = 1, .run = 4, .blocks = 4};
}
RowsChoice columns_choice(ConvolutionDirection direction, Index taps, Index stride, Index columns) {
  bool const data = direction == ConvolutionDirection::data, few = columns <= 7;
  if (direction == ConvolutionDirection::filter) {
    if (taps <= 5 && few) return {.run = 1, .blocks = taps <= 3 ? 8 : 6};
    if (stride > 1) return {.run = 2, .blocks = taps <= 3 ? 8 : taps <= 5 ? 5 : 4};
    if (taps <= 3)
      return columns <= 14 ? RowsChoice{.run = 2, .blocks = 8} : RowsChoice{.run = 4, .blocks = 8};
    if (taps <= 5)
      return columns % 7 == 0 ? RowsChoice{.run = 7, .blocks = 4} : RowsChoice{.run = 4, .blocks = 5};
    return {.run = 7, .blocks = 3};
  }
  if (stride > 1 && data) return {.run = 2, .blocks = taps <= 3 ? 8 : taps <= 5 ? 6 : 4};
  if (taps <= 3)
    return few || stride > 1 ? RowsChoice{.run = 1, .blocks = 8}
                             : RowsChoice{.run = 2, .ahead = true, .unrolled = true, .blocks = 8};
  if (taps <= 5) return few ? RowsChoice{.run = 1, .blocks = 6} : RowsChoice{.run = 2, .blocks = 6};
  return {.run = 4, .blocks = 4};
}

}  // namespace

std::optional<DepthwiseRowsShape> rows_shape(Problem const& p, bool channels_last, int max_vector,
                                             bool emulated) {
  DepthwiseRowsShape shape;
  shape.transposed = is_data(p);
  shape.channels_last = channels_last;
  shape.row_taps = to_int(p.w.extent(2)), shape.column_taps = to_int(p.w.extent(3));
  shape.row_step = to_int(p.stride[0]), shape.column_step = to_int(p.stride[1]);
  shape.dilated = dilation_phases(p) > 1;
  if (emulated) {
    for (DepthwiseRowsShape known : emulated_rows_shapes)
      for (int const vector : {known.vector, 1}) {
        shape.unrolled = known.unrolled, shape.ahead = known.ahead, shape.run = known.run;
        known.transposed = shape.transposed;
        shape.vector = known.vector = vector;
        if (shape == known && vector <= max_vector) return shape;
      }
    return {};
  }
  Index const taps_of_axis = std::max(p.w.extent(2), p.w.extent(3));
  RowsChoice const choice = (channels_last ? channels_choice : columns_choice)(
      p.direction, taps_of_axis, std::max(p.stride[0], p.stride[1]),
      ceiling_divide(p.direction == ConvolutionDirection::data ? p.x.extent(3) : p.y.extent(3),
                     dilation_of(p, 1)));
  shape.vector = std::min(choice.vector, max_vector);
  shape.run = choice.run;
  if (shape.transposed) shape.run = to_int(ceiling_divide(choice.run, shape.column_step)) * shape.column_step;
  // The positions of a phase take the registers that an unrolled step would need.
  shape.ahead = choice.ahead, shape.unrolled = choice.unrolled && !shape.dilated;
  shape.blocks = choice.blocks;
  // Filter gradients keep their sums as well: without this, 8 to 40 bytes per thread are spilled.
  bool const many = shape.vector == 4 || taps_of_axis > 3;
  if (shape.dilated && channels_last && p.direction == ConvolutionDirection::filter && many) --shape.blocks;
  return shape;
}

double rows_seconds(Problem const& p, Gpu const& gpu) {
  constexpr double share_of_memory = 0.85, share_of_rate = 0.33;
  double const products = to_double(p.y.layout.shape.size()) * to_double(p.w.extent(2) * p.w.extent(3));
  double const rate = gpu.clock_hertz * gpu.fma_f32 * gpu.multiprocessors;
  // The columns of a phase share sectors with those of other phases, which other threads read (predicted).
  double const shared_sectors = dilation_of(p, 1) > 1 && !walks_channels(p.x, p.y) ? 1.5 : 1;
  double const copying =
      shared_sectors * to_double(p.x.bytes() + p.y.bytes()) / (share_of_memory * gpu.memory_bytes_per_second);
  double const computing = products / (share_of_rate * rate);
  return std::sqrt(copying * copying + computing * computing);  // std::hypot would require glibc 2.35
}

std::string phases_text(Problem const& p) {
  return dilation_phases(p) == 1 ? "" : fmt::format(", {} phases without dilation", dilation_phases(p));
}

std::string shape_text(DepthwiseRowsShape const& shape) {
  char const* const more = shape.alone ? ", false, true" : shape.dilated ? ", true" : "";
  return fmt::format("DepthwiseRowsShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}{}}}",
                     shape.transposed, shape.channels_last, shape.packed_filter, shape.vector, shape.run,
                     shape.row_taps, shape.column_taps, shape.row_step, shape.column_step, shape.ahead,
                     shape.unrolled, shape.blocks, more);
}

KernelTypes as_f32(KernelTypes types) {
  for (DataType* const type : {&types.image, &types.filter})
    if (*type == DataType::tf32) *type = DataType::f32;
  return types;
}

std::string DepthwiseRowsTraits::print() const {
  return fmt::format("DepthwiseRowsTraits<{}, {}>", types.print(), shape_text(shape));
}

namespace {

// The rows of a part. With more parts, blocks are distributed more evenly over the multiprocessors, but each
// part reads the rows above its own again. Follows 40 measurements of eight layers on an H200
// (docs/decisions/0026). Blocks that do not fill the GPU take as long as the steps of one thread, so then
// parts may be short, if `may_be_short`.
Index rows_of_part(Index rows, Index threads, DepthwiseRowsShape const& shape, Gpu const& gpu,
                   bool may_be_short) {
  constexpr double not_filled = 0.7;  // fewer blocks than this share of the resident ones take as long
  constexpr double gain = 0.05;       // that another part must have
  Index const again = shape.live_groups() - 1, minimum = again + 3;
  Index best = std::max<Index>(1, rows);
  double least = 0;
  for (Index parts = 1; parts <= std::max<Index>(1, rows); parts += 1 + parts / 32) {
    Index const of_part = std::max<Index>(1, ceiling_divide(rows, parts));
    Index const blocks = ceiling_divide(threads * ceiling_divide(rows, of_part), depthwise_rows_threads);
    Index const most = ceiling_divide(blocks, std::max<Index>(1, gpu.multiprocessors)),
                rest = most % shape.blocks;
    bool const filled = !may_be_short || to_double(most) > not_filled * shape.blocks;
    if (parts > 1 && filled && of_part < minimum) break;
    double const last = rest == 0 ? 0 : std::max(to_double(rest), not_filled * shape.blocks);
    // The loads of a single group are all in flight at once.
    double const steps =
        is_alone(shape, of_part, may_be_short) ? 2 + to_double(again) / 3 : to_double(of_part + again);
    double const clocks =
        steps * (to_double(most - rest) + last) * (filled ? 1 + gain * to_double(parts - 1) : 1);
    if (parts > 1 && clocks >= least) continue;
    best = of_part, least = clocks;
  }
  return best;
}

// Divides the run of a thread while less than one block per multiprocessor has work.
void shorten_run(Problem const& p, DepthwiseRowsRecipe& recipe, Gpu const& gpu) {
  constexpr int shortest = 2;
  DepthwiseRowsShape& shape = recipe.shape;
  while (shape.run > std::max(shortest, shape.column_step) &&
         ceiling_divide(threads_of(p, recipe), depthwise_rows_threads) < gpu.multiprocessors)
    shape.run = to_int(ceiling_divide(shape.run, 2 * shape.column_step)) * shape.column_step;
}

}  // namespace

Offer<Problem> depthwise_rows(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = depthwise_rows_violation(problem, device, options);
  if (!offer.refusal.empty()) return offer;
  if (problem.direction == ConvolutionDirection::filter) return depthwise_rows_filter(problem, device);
  ConvolutionForm const form = all_channels_form(problem);
  offer.refusal = extent_violation({form});
  if (!offer.refusal.empty()) return offer;
  bool const emulated = device.backend == Backend::emulator;
  TensorDescription const &image = image_of(problem), &result = result_of(problem);
  bool const last = walks_channels(image, result) && form.image_is_a;
  int const vector = last ? channel_vector(image) : 1;
  ConvolutionRecipe& recipe = offer.recipe;
  recipe.algorithm = ConvolutionAlgorithm::depthwise_rows;
  recipe.product = product_recipe(form);
  DepthwiseRowsRecipe& rows = recipe.own.emplace<DepthwiseRowsRecipe>();
  std::optional<DepthwiseRowsShape> const shape = rows_shape(problem, last, vector, emulated);
  if (!shape) {
    offer.refusal = no_emulated_shape;
    return offer;
  }
  rows.shape = *shape;
  rows.shape.packed_filter = last && is_packed(problem.w, shape->vector);
  rows.store_width = std::min(channel_vector(result), shape->vector);
  Extents const extents = extents_of(problem, rows.shape);
  rows.groups_of_part = to_int(std::max<Index>(1, extents.groups));
  // Emulated, only single images with packed filters.
  bool const few = last && (!emulated || (rows.shape.packed_filter && problem.x.extent(0) == 1));
  rows.groups_of_part =
      emulated && few
          ? 1
          : to_int(rows_of_part(extents.groups, threads_of(problem, rows), *shape, device.gpu, few));
  if (is_alone(rows.shape, rows.groups_of_part, few)) {
    compute_alone(rows.shape);
    if (!emulated) shorten_run(problem, rows, device.gpu);
  } else if (!emulated && shape->column_taps > 3 && shape->row_step == 1 && shape->column_step == 1) {
    rows.shape.packed_filter = false;  // slower by 2 to 15 % (docs/decisions/0026)
  }
  if (threads_of(problem, rows) > max_int - depthwise_rows_threads) {
    offer.refusal =
        fmt::format("{} threads; at most {}", threads_of(problem, rows), max_int - depthwise_rows_threads);
    return offer;
  }
  constexpr double launch_seconds = 2e-6;
  offer.predicted_seconds = launch_seconds + rows_seconds(problem, device.gpu);
  recipe.product.predicted_seconds = offer.predicted_seconds;
  if (emulated) offer.workspace_bytes = emulator::widening_bytes(problem, recipe);
  offer.text = fmt::format("{} columns by {} channels per thread, down {} rows, threads along {}",
                           rows.shape.run, rows.shape.vector, rows.groups_of_part * rows.shape.rows_out(),
                           last ? "channels" : "columns") +
               phases_text(problem);
  return offer;
}

program::Program depthwise_rows_program(Plan<Problem> const& plan) {
  Problem const& problem = plan.problem;
  DepthwiseRowsRecipe const& recipe = std::get<DepthwiseRowsRecipe>(plan.recipe.own);
  ConvolutionProgram made(plan);
  ConvolutionForm const form = made.in_kernel(all_channels_form(problem));
  KernelTypes types = as_f32(made.types_of(form));
  if (!made.is_emulated())
    types.destination = fmt::format("OffsetDestination<{}, {}>", name_of(form.d.type), recipe.store_width);
  DepthwiseRowsShape const& shape = recipe.shape;
  int const filters = depthwise_rows_threads * shape.vector * shape.row_taps * shape.column_taps;
  auto const shared = static_cast<unsigned>(shape.packed_filter ? filters * size_of(types.filter) : 0);
  program::KernelSpec kernel{.headers = {"conv/depthwise/depthwise_rows.h"},
                             .entry = "depthwise_rows_kernel",
                             .traits = DepthwiseRowsTraits{types, shape}.print(),
                             .asserted = {{"ComposedTraits::threads", depthwise_rows_threads}},
                             .threads = depthwise_rows_threads,
                             .shared_bytes = shared};
  if (shared > 0) kernel.asserted.push_back({"sizeof(ComposedTraits::SharedStorage)", shared});
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = DepthwiseRowsParameters<Epilogue, Destination>;
    std::size_t const index = made.add_kernel<Parameters>(kernel, form);
    if (form.rows() == 0 || form.columns() == 0) return;
    auto const fill = [form, all = arguments_of(problem, form, shape),
                       schedule = schedule_of(problem, recipe), image = made.image,
                       filter = made.filter](program::Run const& run, Parameters& to) {
      to.all = all;
      to.all.image = image.of(run);
      to.all.filter = filter.of(run);
      to.schedule = schedule;
      fill_destination(to.d, form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, form, run);
    };
    made.launch<Parameters>(index, {ceiling_divide(threads_of(problem, recipe), depthwise_rows_threads)},
                            fill);
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
