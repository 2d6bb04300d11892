// The workspace layout of planes, factors and sums, and the parameters of the launches that compute them.
#include "src/plan/conv/fft/fft.h"

#include <algorithm>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/launch.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// An address in the workspace; null while planning, when there is no workspace yet.
std::byte* at_offset(std::byte* workspace, std::size_t offset) {
  return workspace == nullptr ? nullptr : workspace + offset;
}

WindowForm const& filter_of(ConvolutionForm const& form) { return form.image_is_a ? form.b : form.a; }

// Converts an axis with a negative tap step to a positive one, starting from the last tap.
void turn(WindowAxis& axis, Index& filter_base) {
  if (axis.taps < 1) {
    axis.taps = 0, axis.tap_step = 1;
  } else if (axis.tap_step < 0) {
    axis.origin += axis.tap_step * (axis.taps - 1);
    axis.tap_step = -axis.tap_step;
    filter_base += axis.filter_stride * (axis.taps - 1);
    axis.filter_stride = -axis.filter_stride;
  }
}

FftForm fft_form(ConvolutionForm const& form, bool gradient) {
  FftForm made;
  made.form = form;
  made.gradient = gradient;
  WindowForm const &image = form.image(), &filter = filter_of(form);
  WindowArguments const& all = image.arguments;
  ProductIndex const& pixels = form.image_outer();
  auto const output = [&](char letter) { return find_digit(letter, pixels, all.outer); };
  auto const summed = [&](char letter) { return find_digit(letter, form.k, all.depth); };
  auto const weight = [&](char letter) { return find_digit(letter, form.k, filter.arguments.depth); };
  // The index letters of the result's rows, columns and remaining dimension, and of the summed dimensions.
  char const* const outer = gradient ? "rsc" : "pqn";
  char const* const inner = gradient ? "pqn" : "rsc";
  made.rows = window_axis(output(outer[0]), summed(inner[0]), weight(inner[0]), &IndexStride::down, all.top,
                          all.height);
  made.columns = window_axis(output(outer[1]), summed(inner[1]), weight(inner[1]), &IndexStride::right,
                             all.left, all.width);
  made.outers = output(outer[2]).extent;
  made.outer_number = output(outer[2]).number;
  made.image_outer = output(outer[2]).step.stride;
  made.depths = summed(inner[2]).extent;
  made.image_depth = summed(inner[2]).step.stride;
  made.filter_depth = weight(inner[2]).step.stride;
  made.others = (form.image_is_a ? form.n : form.m)[2].extent;
  made.filter_other = filter.arguments.outer.last.stride;
  made.image_base = image.base - all.top * made.rows.image_stride - all.left * made.columns.image_stride;
  made.filter_base = filter.base;
  turn(made.rows, made.filter_base);
  turn(made.columns, made.filter_base);
  return made;
}

// Rounds a pitch up to full 32-byte sectors.
Index pitch_of(Index places, DataType type) {
  Index const unit = 32 / size_of(type);
  return ceiling_divide(places, unit) * unit;
}

Index tiles_of(FftRecipe const& recipe) { return Index{recipe.tiles_down} * recipe.tiles_across; }

FftChunk chunk_of(FftRecipe const& recipe, Index outers, Index depths, Index first, Index count,
                  Index blocks_of_planes, std::byte* workspace) {
  FftChunk chunk;
  chunk.planes = at_offset(workspace, recipe.planes);
  chunk.first = to_int(first);
  chunk.count = to_int(count);
  chunk.outers = Divisor(std::max<Index>(1, outers));
  chunk.depths = Divisor(std::max<Index>(1, depths));
  chunk.rows = recipe.rows;
  chunk.columns = recipe.columns;
  chunk.pitch = Divisor(2 * (recipe.columns / 2 + 1));
  chunk.tiles = Divisor(std::max<Index>(1, blocks_of_planes));
  return chunk;
}

// Index digits (outer index with `stride`, tile row, tile column); single_steps() has just one digit.
IndexStrides tiles_steps(FftRecipe const& recipe, Index stride, int down, int right) {
  IndexStrides steps;
  steps.extents = {Divisor(recipe.tiles_down), Divisor(recipe.tiles_across)};
  steps.first.stride = stride;
  steps.middle.down = down;
  steps.last.right = right;
  return steps;
}
IndexStrides single_steps(Index extent, Index stride) {
  IndexStrides steps;
  steps.extents = {Divisor(1), Divisor(std::max<Index>(1, extent))};
  steps.last.stride = stride;
  return steps;
}

Index planes_positions(FftRecipe const& recipe) {
  return Index{recipe.rows} * (2 * (recipe.columns / 2 + 1));
}

FftMatrixParameters matrix_of(FftRecipe const& recipe, FftExtents const& extents, Index outers, Index depths,
                              Index first, Index count, Index lines, Index places, DataType type,
                              std::size_t offset, std::byte* workspace) {
  FftMatrixParameters made;
  made.chunk = chunk_of(recipe, outers, depths, first, count, ceiling_divide(extents.frequencies, fft_side),
                        workspace);
  made.data = at_offset(workspace, offset);
  made.groups = to_int(extents.groups);
  made.pitch = pitch_of(places, type);
  made.matrix_pitch = made.pitch * lines;
  return made;
}

int factor_of(FftRecipe const& recipe, FftDoubled which) { return recipe.doubled == which ? 2 : 1; }

TensorDescription operand(FftExtents const& extents, Index rows, Index columns, Index row_stride,
                          Index column_stride, Index matrix_pitch, DataType type) {
  TensorDescription tensor;
  tensor.type = type;
  tensor.layout.shape = {extents.frequencies * extents.groups, rows, columns};
  tensor.layout.stride[0] = matrix_pitch;
  tensor.layout.stride[1] = row_stride;
  tensor.layout.stride[2] = column_stride;
  return tensor;
}

}  // namespace

std::vector<FftForm> fft_forms(Problem const& problem) {
  std::vector<ConvolutionForm> forms = forms_of(problem);
  unify(forms);
  std::vector<FftForm> made;
  for (ConvolutionForm const& form : forms)
    made.push_back(fft_form(form, problem.direction == ConvolutionDirection::filter));
  return made;
}

FftExtents fft_extents(FftForm const& form, FftRecipe const& recipe, Index slice) {
  FftExtents extents;
  extents.frequencies = Index{recipe.rows} * (recipe.columns / 2 + 1);
  extents.positions = Index{recipe.rows} * recipe.columns;
  extents.groups = form.form.groups;
  extents.image_lines = form.gradient ? slice : slice * tiles_of(recipe);
  extents.depths = form.gradient ? form.depths * tiles_of(recipe) : form.depths;
  extents.filter_lines = form.others;
  return extents;
}

Index fft_plane_bytes(FftRecipe const& recipe) { return planes_positions(recipe) * size_of(recipe.real); }

std::size_t fft_matrix_bytes(FftExtents const& extents, Index lines, Index places, DataType type) {
  return static_cast<std::size_t>(extents.frequencies * extents.groups * lines * pitch_of(places, type) *
                                  size_of(type));
}

FftPlanesParameters fft_image_planes(FftForm const& form, FftRecipe const& recipe, void const* image,
                                     Index outer, Index outers, Index first, Index count,
                                     std::byte* workspace) {
  FftExtents const extents = fft_extents(form, recipe, outers);
  FftPlanesParameters made;
  made.chunk = chunk_of(recipe, extents.image_lines, extents.depths, first, count,
                        ceiling_divide(planes_positions(recipe), fft_positions), workspace);
  WindowForm const& tensor = form.form.image();
  made.type = tensor.type;
  made.from = moved(image, form.image_base + outer * form.image_outer, tensor.type);
  made.group_stride = tensor.arguments.batch_stride;
  int const down = recipe.tile_rows * (form.gradient ? form.rows.tap_step : form.rows.output_step);
  int const right = recipe.tile_columns * (form.gradient ? form.columns.tap_step : form.columns.output_step);
  made.outer = form.gradient ? single_steps(outers, form.image_outer)
                             : tiles_steps(recipe, form.image_outer, down, right);
  made.depth = form.gradient ? tiles_steps(recipe, form.image_depth, down, right)
                             : single_steps(form.depths, form.image_depth);
  made.row = {Divisor(1), recipe.rows, form.rows.origin, form.rows.size, form.rows.image_stride};
  made.column = {Divisor(1), recipe.columns, form.columns.origin, form.columns.size,
                 form.columns.image_stride};
  return made;
}

FftPlanesParameters fft_filter_planes(FftForm const& form, FftRecipe const& recipe, void const* filter,
                                      Index first, Index count, std::byte* workspace) {
  FftExtents const extents = fft_extents(form, recipe, recipe.slice);
  FftPlanesParameters made;
  made.chunk = chunk_of(recipe, extents.filter_lines, extents.depths, first, count,
                        ceiling_divide(planes_positions(recipe), fft_positions), workspace);
  if (fft_pointwise(form))  // written directly to where the products read them
    made.chunk.planes =
        at_offset(workspace, recipe.filter + static_cast<std::size_t>(first * fft_plane_bytes(recipe)));
  WindowForm const& tensor = filter_of(form.form);
  made.type = tensor.type;
  made.from = moved(filter, form.filter_base, tensor.type);
  made.group_stride = tensor.arguments.batch_stride;
  made.outer = single_steps(form.others, form.filter_other);
  made.depth = form.gradient ? tiles_steps(recipe, form.filter_depth, recipe.tile_rows, recipe.tile_columns)
                             : single_steps(form.depths, form.filter_depth);
  auto const axis = [&](WindowAxis const& along, int tile) {
    return FftAxis{Divisor(along.tap_step), form.gradient ? tile : along.taps, 0, along.taps,
                   along.filter_stride};
  };
  made.row = axis(form.rows, recipe.tile_rows);
  made.column = axis(form.columns, recipe.tile_columns);
  return made;
}

FftProductParameters fft_products(FftForm const& form, FftRecipe const& recipe, Index outers, Index first,
                                  Index count, std::byte* workspace) {
  FftExtents const extents = fft_extents(form, recipe, outers);
  return {chunk_of(recipe, extents.image_lines, 1, first, count,
                   ceiling_divide(extents.frequencies, fft_side), workspace),
          at_offset(workspace, recipe.filter)};
}

FftMatrixParameters fft_image_factor(FftForm const& form, FftRecipe const& recipe, Index outers, Index first,
                                     Index count, std::byte* workspace) {
  FftExtents const here = fft_extents(form, recipe, outers), whole = fft_extents(form, recipe, recipe.slice);
  return matrix_of(recipe, here, here.image_lines, here.depths, first, count,
                   whole.image_lines * factor_of(recipe, FftDoubled::image), 2 * here.depths, recipe.factor,
                   recipe.image, workspace);
}

FftMatrixParameters fft_filter_factor(FftForm const& form, FftRecipe const& recipe, Index first, Index count,
                                      std::byte* workspace) {
  FftExtents const extents = fft_extents(form, recipe, recipe.slice);
  return matrix_of(recipe, extents, extents.filter_lines, extents.depths, first, count,
                   extents.filter_lines * factor_of(recipe, FftDoubled::filter), 2 * extents.depths,
                   recipe.factor, recipe.filter, workspace);
}

FftMatrixParameters fft_sums(FftForm const& form, FftRecipe const& recipe, Index outers, Index first,
                             Index count, std::byte* workspace) {
  FftExtents const here = fft_extents(form, recipe, outers), whole = fft_extents(form, recipe, recipe.slice);
  return matrix_of(recipe, here, here.image_lines, here.filter_lines, first, count,
                   whole.image_lines * factor_of(recipe, FftDoubled::image),
                   here.filter_lines * factor_of(recipe, FftDoubled::filter), recipe.real, recipe.sums,
                   workspace);
}

FftCrop fft_crop(FftForm const& form, FftRecipe const& recipe, Index outer, Index outers, Index first,
                 Index count, std::byte* workspace) {
  FftExtents const extents = fft_extents(form, recipe, outers);
  Index const rows = form.gradient ? form.rows.outputs : recipe.tile_rows,
              columns = form.gradient ? form.columns.outputs : recipe.tile_columns;
  FftCrop crop;
  crop.chunk = chunk_of(recipe, extents.image_lines, extents.filter_lines, first, count,
                        ceiling_divide(rows * columns, fft_positions), workspace);
  crop.scale = 1 / static_cast<double>(extents.positions);
  crop.outer = form.gradient ? single_steps(outers, form.outer_number)
                             : tiles_steps(recipe, form.outer_number, recipe.tile_rows, recipe.tile_columns);
  crop.tile_columns = Divisor(std::max<Index>(1, columns));
  crop.tile_outputs = to_int(rows * columns);
  crop.first_pixel = to_int(outer * form.outer_number);
  return crop;
}

Index fft_blocks(FftChunk const& chunk) {
  return ceiling_divide(chunk.count, fft_side) * chunk.tiles.divisor;
}

bool fft_reads_across(FftPlanesParameters const& parameters) {
  return parameters.depth.last.stride == 1 && std::abs(parameters.column.stride) != 1;
}

bool fft_writes_across(FftForm const& form) {
  return form.form.image_is_a && form.form.d.arguments.column_stride[2] == 1;
}

bool fft_pointwise(FftForm const& form) { return !form.gradient && form.depths == 1 && form.others == 1; }

Plan<GemmProblem> fft_product(Plan<Problem> const& plan) {
  FftRecipe const& recipe = std::get<FftRecipe>(plan.recipe.own);
  FftForm const form = fft_forms(plan.problem).front();
  FftExtents const extents = fft_extents(form, recipe, recipe.slice);
  FftMatrixParameters const image = fft_image_factor(form, recipe, recipe.slice, 0, 0, nullptr),
                            filter = fft_filter_factor(form, recipe, 0, 0, nullptr),
                            sums = fft_sums(form, recipe, recipe.slice, 0, 0, nullptr);
  Index const m = extents.image_lines * factor_of(recipe, FftDoubled::image),
              n = extents.filter_lines * factor_of(recipe, FftDoubled::filter), k = 2 * extents.depths;
  Plan<GemmProblem> product;
  GemmProblem& gemm = product.problem;
  gemm.a = operand(extents, m, k, image.pitch, 1, image.matrix_pitch, recipe.factor);
  gemm.b = operand(extents, k, n, 1, filter.pitch, filter.matrix_pitch, recipe.factor);
  gemm.d = operand(extents, m, n, sums.pitch, 1, sums.matrix_pitch, recipe.real);
  product.device = plan.device;
  product.kernel = name_of(plan.recipe.product.policy.main_loop);
  product.recipe = plan.recipe.product;
  product.workspace_bytes = recipe.planes;
  return product;
}

}  // namespace cosmati::plan
