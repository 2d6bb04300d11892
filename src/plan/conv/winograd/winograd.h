// Winograd's convolution: filters and tiles of the image are transformed into matrices in the workspace, a
// batch of products is computed by a kernel of the matrix product, and the sums become results with the
// epilogue.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "cosmati/conv/winograd/winograd_arguments.h"
#include "cosmati/conv/winograd/winograd_matrices.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> winograd(ConvolutionProblem const& problem, Device const& device,
                                   PlanOptions const& options);

// The reason why these transforms do not support the problem; empty if they do.
std::string winograd_violation(ConvolutionProblem const& problem);

// The expected error (Considered::expected_error) of sums of `terms` products in f32, f64 or integers, and of
// sums through transforms stored in `type`: with k the factor by which transforms of `tile` amplify an error,
//   (0.18 k^2 (2 u_type^2 + u^2 (terms / 2 + 12)))^1/2,
// where 0.18 u^2 is the mean square of a rounding's relative error, and u that of f32; only half of the terms
// of a sum are counted. A filter of rows x columns taps has `channels` terms for each of its parts of taps x
// taps.
double sums_error(DataType sum, Index terms);
double winograd_error(int tile, DataType type, Index channels, Index rows = 3, Index columns = 3,
                      int taps = 3);
// The same for a filter gradient in f32, whose sums have `tiles` terms.
double winograd_filter_error(int tile, Index tiles);

// The form of the problem; for a data gradient the filter is reversed.
SlidingForm winograd_form(ConvolutionProblem const& problem);

// Filters are divided into parts of at most 3x3 or 5x5 taps, each of which is transformed with the windows of
// the image that it meets. The channels of all parts follow each other in the matrices, so that the products
// add the parts' sums.
struct WinogradPart {
  int row = 0, column = 0;  // its first tap
  int rows = 3, columns = 3;
};
constexpr Index winograd_parts(Index rows, Index columns, int taps) {
  return (rows + taps - 1) / taps * ((columns + taps - 1) / taps);
}
inline int winograd_parts(SlidingForm const& form, WinogradRecipe const& recipe) {
  return static_cast<int>(winograd_parts(form.window.rows.taps, form.window.columns.taps, recipe.taps));
}
WinogradPart winograd_part(SlidingForm const& form, WinogradRecipe const& recipe, int number);

// The plan of the products, whose recipe is part of the convolution's plan.
Plan<GemmProblem> winograd_product(Plan<ConvolutionProblem> const& plan);

// Channels per thread if they are contiguous.
constexpr int winograd_channels(WinogradRecipe const& recipe) {
  return cosmati::winograd_channels(recipe.size());
}
Index winograd_blocks(WinogradMatrix const& matrix, int width);

// Shared by the offers: the refusal of strides, dilation or groups, empty if there is none; the size of the
// matrices of all positions; the predicted time of a pass over memory.
std::string winograd_shape_violation(ConvolutionProblem const& problem);
std::size_t winograd_bytes(WinogradMatrix const& matrix, int size);
double transform_pass_seconds(double bytes, Gpu const& gpu);

// Rounds a pitch up to full 32-byte sectors.
Index winograd_pitch(Index places, DataType type);
WinogradMatrix winograd_matrix(Index lines, Index places, Index pitch, Index pitch_lines, DataType type,
                               int width, void* data);
// A matrix with tiles or channels as lines. It holds the tiles of `images` images; its pitches are those of a
// full slice.
WinogradMatrix tiles_matrix(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                            Index channels, bool channels_last, DataType type, std::byte* data);
// The matrices as an operand (position, rows, columns) of a product; `lines_first` makes lines the rows.
TensorDescription winograd_operand(WinogradMatrix const& from, int size, bool lines_first);

// The matrices with the channels of all parts, and parameters of the launch for one part.
WinogradMatrix filter_matrix(SlidingForm const& form, WinogradRecipe const& recipe, std::byte* workspace);
WinogradMatrix image_matrix(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                            std::byte* workspace);
WinogradFilterParameters filter_parameters(SlidingForm const& form, WinogradRecipe const& recipe,
                                           void const* filter, int part, std::byte* workspace);
// Parameters for `count` images starting at `first`.
WinogradImageParameters image_parameters(SlidingForm const& form, WinogradRecipe const& recipe,
                                         void const* image, Index first, Index count, int part,
                                         std::byte* workspace);
WinogradMatrix sums_matrix(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                           std::byte* workspace);
// Returns the tiles of `images` images whose numbers in the digit are `image_stride` apart.
IndexStrides winograd_tiles(SlidingForm const& form, WinogradRecipe const& recipe, Index images,
                            Index image_stride);

// All parameters except epilogue and destination.
template <class Parameters>
void fill_winograd_result(Parameters& parameters, SlidingForm const& form, WinogradRecipe const& recipe,
                          Index first, Index count, std::byte* workspace) {
  SlidingArguments const& window = form.window;
  parameters.from = sums_matrix(form, recipe, count, workspace);
  parameters.tiles = winograd_tiles(form, recipe, count, window.image_number);
  parameters.first_pixel = static_cast<int>(first * window.image_number);
  parameters.rows = window.rows.outputs;
  parameters.columns = window.columns.outputs;
  parameters.row_number = window.rows.number;
  parameters.column_number = window.columns.number;
}

}  // namespace cosmati::plan
