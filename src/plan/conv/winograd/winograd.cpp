// The workspace layout of Winograd convolution, and the parameters of its launches.
#include "src/plan/conv/winograd/winograd.h"

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

Index tiles_of_image(SlidingForm const& form, WinogradRecipe const& recipe) {
  return ceiling_divide(form.window.rows.outputs, recipe.tile) *
         ceiling_divide(form.window.columns.outputs, recipe.tile);
}

void turn(WindowAxis& axis, Index& filter_base) {
  if (axis.tap_step > 0) return;
  axis.origin += axis.tap_step * (axis.taps - 1);
  axis.tap_step = -axis.tap_step;
  filter_base += axis.filter_stride * (axis.taps - 1);
  axis.filter_stride = -axis.filter_stride;
}

// The lines or places of a matrix that belong to the channels of one part.
WinogradMatrix channels_of_part(WinogradMatrix const& all, int part, Index channels, bool channels_last,
                                int width) {
  Index const first = part * channels * (channels_last ? 1 : all.pitch) * size_of(all.type);
  WinogradMatrix made = winograd_matrix(
      channels_last ? all.lines : channels, channels_last ? channels : all.places, all.pitch, 0, all.type,
      width, at_offset(static_cast<std::byte*>(all.data), static_cast<std::size_t>(first)));
  made.matrix_pitch = all.matrix_pitch;
  return made;
}

}  // namespace

WinogradMatrix winograd_matrix(Index lines, Index places, Index pitch, Index pitch_lines, DataType type,
                               int width, void* data) {
  WinogradMatrix made;
  made.data = data;
  made.type = type;
  made.lines = to_int(lines);
  made.places = to_int(places);
  made.pitch = pitch;
  made.matrix_pitch = pitch * pitch_lines;
  Index const runs = ceiling_divide(places, width);
  made.log2_lanes = 0;
  while ((1 << made.log2_lanes) < winograd_threads && (Index{1} << made.log2_lanes) < runs) ++made.log2_lanes;
  made.blocks_of_line = Divisor(std::max<Index>(1, ceiling_divide(runs, Index{1} << made.log2_lanes)));
  return made;
}

Index winograd_pitch(Index places, DataType type) {
  Index const unit = 32 / size_of(type);
  return ceiling_divide(places, unit) * unit;
}

WinogradMatrix tiles_matrix(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                            Index channels, bool channels_last, DataType type, std::byte* data) {
  Index const of_image = tiles_of_image(form, recipe), tiles = images * of_image,
              maximum = recipe.slice * of_image;
  if (channels_last)
    return winograd_matrix(tiles, channels, winograd_pitch(channels, type), maximum, type,
                           winograd_channels(recipe), data);
  return winograd_matrix(channels, tiles, winograd_pitch(maximum, type), channels, type, 1, data);
}

TensorDescription winograd_operand(WinogradMatrix const& from, int size, bool lines_first) {
  TensorDescription tensor;
  tensor.type = from.type;
  tensor.layout.shape = {Index{size} * size, lines_first ? from.lines : from.places,
                         lines_first ? from.places : from.lines};
  Index const strides[2] = {from.pitch, 1};
  tensor.layout.stride[0] = from.matrix_pitch;
  tensor.layout.stride[1] = strides[lines_first ? 0 : 1];
  tensor.layout.stride[2] = strides[lines_first ? 1 : 0];
  return tensor;
}

SlidingForm winograd_form(Problem const& problem) {
  SlidingForm form = sliding_forms(problem, ConvolutionAlgorithm::winograd).front();
  turn(form.window.rows, form.filter_base);
  turn(form.window.columns, form.filter_base);
  return form;
}

Index winograd_blocks(WinogradMatrix const& matrix, int width) {
  if (matrix.lines == 0 || matrix.places == 0) return 0;
  Index const lanes = Index{1} << matrix.log2_lanes, others = winograd_threads / lanes;
  return ceiling_divide(matrix.places, width * lanes) * ceiling_divide(matrix.lines, others);
}

WinogradPart winograd_part(SlidingForm const& form, WinogradRecipe const& recipe, int number) {
  int const across = to_int(ceiling_divide(form.window.columns.taps, recipe.taps));
  WinogradPart part;
  part.row = number / across * recipe.taps;
  part.column = number % across * recipe.taps;
  part.rows = std::min(recipe.taps, form.window.rows.taps - part.row);
  part.columns = std::min(recipe.taps, form.window.columns.taps - part.column);
  return part;
}

WinogradMatrix filter_matrix(SlidingForm const& form, WinogradRecipe const& recipe, std::byte* workspace) {
  Index const inputs = Index{form.window.inputs} * winograd_parts(form, recipe),
              outputs = form.window.outputs;
  Index const lines = recipe.filter_inputs_last ? outputs : inputs,
              places = recipe.filter_inputs_last ? inputs : outputs;
  return winograd_matrix(lines, places, winograd_pitch(places, recipe.type), lines, recipe.type, 1,
                         at_offset(workspace, recipe.filter));
}

WinogradFilterParameters filter_parameters(SlidingForm const& form, WinogradRecipe const& recipe,
                                           void const* filter, int part, std::byte* workspace) {
  WinogradPart const taps = winograd_part(form, recipe, part);
  SlidingForm moved = form;
  moved.filter_base +=
      taps.row * form.window.rows.filter_stride + taps.column * form.window.columns.filter_stride;
  SlidingArguments const window = sliding_arguments(moved, nullptr, filter);
  bool const inputs_last = recipe.filter_inputs_last;
  WinogradFilterParameters made;
  made.filter = window.filter;
  made.type = (form.form.image_is_a ? form.form.b : form.form.a).type;
  made.rows = taps.rows;
  made.columns = taps.columns;
  made.row_stride = window.rows.filter_stride;
  made.column_stride = window.columns.filter_stride;
  made.line_stride = inputs_last ? window.filter_output : window.filter_input;
  made.place_stride = inputs_last ? window.filter_input : window.filter_output;
  made.to = channels_of_part(filter_matrix(form, recipe, workspace), part, window.inputs, inputs_last, 1);
  return made;
}

IndexStrides winograd_tiles(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                            Index image_stride) {
  ProductIndex const& pixels = form.form.image_outer();
  Index extent[3];
  IndexStride step[3];
  for (std::size_t i = 0; i < 3; ++i) {
    extent[i] = 1;
    switch (pixels[i].letter) {
      case 'n': extent[i] = images, step[i].stride = image_stride; break;
      case 'p':
        extent[i] = ceiling_divide(form.window.rows.outputs, recipe.tile), step[i].down = recipe.tile;
        break;
      case 'q':
        extent[i] = ceiling_divide(form.window.columns.outputs, recipe.tile), step[i].right = recipe.tile;
        break;
      default: break;
    }
  }
  return {{Divisor(std::max<Index>(1, extent[1])), Divisor(std::max<Index>(1, extent[2]))},
          step[0],
          step[1],
          step[2]};
}

WinogradMatrix image_matrix(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                            std::byte* workspace) {
  return tiles_matrix(form, recipe, images, Index{form.window.inputs} * winograd_parts(form, recipe),
                      recipe.image_channels_last, recipe.type, at_offset(workspace, recipe.image));
}

WinogradImageParameters image_parameters(SlidingForm const& form, WinogradRecipe const& recipe,
                                         void const* image, Index first, Index count, int part,
                                         std::byte* workspace) {
  WinogradPart const taps = winograd_part(form, recipe, part);
  SlidingForm moved = form;
  moved.image_base += first * form.window.image_stride;
  SlidingArguments const window = sliding_arguments(moved, image, nullptr);
  WinogradImageParameters made;
  made.image = window.image;
  made.type = form.form.image().type;
  made.tiles = winograd_tiles(form, recipe, count, window.image_stride);
  made.top = window.rows.origin + taps.row;
  made.left = window.columns.origin + taps.column;
  made.height = window.rows.size;
  made.width = window.columns.size;
  made.row_stride = window.rows.image_stride;
  made.column_stride = window.columns.image_stride;
  made.channel_stride = window.image_input;
  made.to = channels_of_part(image_matrix(form, recipe, count, workspace), part, window.inputs,
                             recipe.image_channels_last,
                             recipe.image_channels_last ? winograd_channels(recipe) : 1);
  return made;
}

WinogradMatrix sums_matrix(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                           std::byte* workspace) {
  return tiles_matrix(form, recipe, images, form.window.outputs, recipe.run == WinogradRun::channels,
                      DataType::f32, at_offset(workspace, recipe.sums));
}

Plan<GemmProblem> winograd_product(Plan<Problem> const& plan) {
  WinogradRecipe const& recipe = std::get<WinogradRecipe>(plan.recipe.own);
  SlidingForm const form = winograd_form(plan.problem);
  Plan<GemmProblem> product;
  GemmProblem& gemm = product.problem;  // sums(tile, k) = image(tile, c) * filter(c, k) for each position
  gemm.a = winograd_operand(image_matrix(form, recipe, recipe.slice, nullptr), recipe.size(),
                            recipe.image_channels_last);
  gemm.b = winograd_operand(filter_matrix(form, recipe, nullptr), recipe.size(), !recipe.filter_inputs_last);
  gemm.d = winograd_operand(sums_matrix(form, recipe, recipe.slice, nullptr), recipe.size(),
                            recipe.run == WinogradRun::channels);
  product.device = plan.device;
  product.kernel = name_of(plan.recipe.product.policy.main_loop);
  product.recipe = plan.recipe.product;
  product.workspace_bytes = recipe.filter;
  return product;
}

}  // namespace cosmati::plan
