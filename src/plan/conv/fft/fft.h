// Convolution by Fourier transforms: tiles of the image and filters are transformed into planes of
// frequencies, a complex matrix product for each frequency sums over the channels, and the sums become
// results with the epilogue. The filter gradient is the same with dy as the filter and images as channels.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cosmati/conv/fft/fft_arguments.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> fft(ConvolutionProblem const& problem, Device const& device,
                              PlanOptions const& options);

// The expected error (Considered::expected_error) of sums over `depth` products of complex numbers in planes
// of `positions`, computed in `real` from factors of type `factor`.
double fft_error(DataType real, DataType factor, Index depth, Index positions);

// One product of a problem. The image provides one index of the result: tiles of images or, for the filter
// gradient, input channels. The tensor that it is correlated with provides the other one.
struct FftForm {
  ConvolutionForm form;
  WindowAxis rows, columns;  // taps in ascending order
  bool gradient = false;     // filter gradient: tiles divide the summed tensor, not the result
  // Extents: images or input channels (kept in the result); channels or images (summed); the result's other
  // index.
  Index outers = 1, depths = 1, others = 1;
  Index image_outer = 0, image_depth = 0, filter_depth = 0, filter_other = 0;  // strides
  // Increment of the pixel's index.
  Index outer_number = 0;
  Index image_base = 0, filter_base = 0;
};
// One form, or one per phase of a strided data gradient.
std::vector<FftForm> fft_forms(ConvolutionProblem const& problem);

// Extents of the factors and of the sums of a slice.
struct FftExtents {
  Index frequencies = 0, positions = 0;
  Index groups = 1, image_lines = 0, depths = 0, filter_lines = 0;  // lines before they are doubled
};
FftExtents fft_extents(FftForm const& form, FftRecipe const& recipe, Index slice);
// Bytes per plane.
Index fft_plane_bytes(FftRecipe const& recipe);
// Returns the bytes of the matrices, one for each frequency and group, of `lines` lines with `places` numbers
// of `type` each.
std::size_t fft_matrix_bytes(FftExtents const& extents, Index lines, Index places, DataType type);

// Whether groups have one input and one output channel, so that the sums are products of planes, without
// matrices.
bool fft_pointwise(FftForm const& form);

// The plan of the matrix product, whose recipe is part of the convolution's plan.
Plan<GemmProblem> fft_product(Plan<ConvolutionProblem> const& plan);

// Parameters of the kernels for chunks of `count` planes starting at `first`. The planes of the image have
// `outers` values of the outer index, starting at `outer`.
FftPlanesParameters fft_image_planes(FftForm const& form, FftRecipe const& recipe, void const* image,
                                     Index outer, Index outers, Index first, Index count,
                                     std::byte* workspace);
FftPlanesParameters fft_filter_planes(FftForm const& form, FftRecipe const& recipe, void const* filter,
                                      Index first, Index count, std::byte* workspace);
FftMatrixParameters fft_image_factor(FftForm const& form, FftRecipe const& recipe, Index outers, Index first,
                                     Index count, std::byte* workspace);
FftMatrixParameters fft_filter_factor(FftForm const& form, FftRecipe const& recipe, Index first, Index count,
                                      std::byte* workspace);
FftMatrixParameters fft_sums(FftForm const& form, FftRecipe const& recipe, Index outers, Index first,
                             Index count, std::byte* workspace);

FftProductParameters fft_products(FftForm const& form, FftRecipe const& recipe, Index outers, Index first,
                                  Index count, std::byte* workspace);

// Number of blocks of a launch.
Index fft_blocks(FftChunk const& chunk);

// Whether lanes are along planes when tensors are read and when the result is written.
bool fft_reads_across(FftPlanesParameters const& parameters);
bool fft_writes_across(FftForm const& form);

// All parameters except epilogue and destination.
struct FftCrop {
  FftChunk chunk;
  double scale = 1;
  IndexStrides outer;
  Divisor tile_columns;
  int tile_outputs = 1;
  int first_pixel = 0;
};
FftCrop fft_crop(FftForm const& form, FftRecipe const& recipe, Index outer, Index outers, Index first,
                 Index count, std::byte* workspace);
template <class Parameters>
void fill_fft_result(Parameters& parameters, FftForm const& form, FftCrop const& crop) {
  parameters.chunk = crop.chunk;
  parameters.scale = crop.scale;
  parameters.outer = crop.outer;
  parameters.tile_columns = crop.tile_columns;
  parameters.tile_outputs = crop.tile_outputs;
  parameters.first_pixel = crop.first_pixel;
  parameters.rows = form.rows.outputs;
  parameters.columns = form.columns.outputs;
  parameters.row_step = form.rows.output_step;
  parameters.column_step = form.columns.output_step;
  parameters.row_number = form.rows.number;
  parameters.column_number = form.columns.number;
}

}  // namespace cosmati::plan
