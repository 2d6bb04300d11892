// How a GPU kernel, composed or emulated, computes a convolution: what a plan holds beyond its name.
#pragma once
#include <optional>

#include "cosmati/conv/direct_tile.h"
#include "cosmati/conv/fft_doubled.h"
#include "cosmati/conv/merged_shape.h"
#include "cosmati/conv/winograd_run.h"
#include "cosmati/ops/gemm_recipe.h"

namespace cosmati {

// How a convolution is computed: by a kernel of include/cosmati/conv/; by one of include/cosmati/gemm/
// (gemm); some images at a time, by any of these (image_slices).
enum class ConvolutionAlgorithm : unsigned char {
  implicit_gemm,
  direct,
  direct_tiled,
  direct_merged,
  unroll_gemm,
  depthwise,
  gemm,
  winograd,
  fft,
  image_slices
};

// The matrix that unroll_gemm writes before the product (cosmati/conv/unroll.h): lines of neighbours along
// `along`, written `width` at a time.
struct UnrollRecipe {
  Along along = Along::depth;
  int width = 1;
  // Slices: `slice` values of the pixels' (of a filter gradient: the taps') digit number `digit`.
  int digit = 0;
  Index slice = 0;
  std::size_t bytes = 0;   // of the largest slice, in the type in which the product reads it
  std::size_t offset = 0;  // in the workspace
  friend bool operator==(UnrollRecipe const&, UnrollRecipe const&) = default;
};

// Operands that are written to the workspace, channels side by side in units of 16 bytes, before the copy
// engine unrolls them (cosmati/conv/packing.h). With rows > 0 a place of the image holds so many of its rows,
// `place` elements with what is padded, and the taps of a row are channels of one window.
struct PackRecipe {
  bool image = false, other = false;  // the operand with windows, and that without
  int rows = 0, place = 0;
  std::size_t of_image = 0, of_other = 0, end = 0;  // in the workspace, bytes: behind the product's own
  friend bool operator==(PackRecipe const&, PackRecipe const&) = default;
};

// Of the kernels that slide windows over the image: direct_tiled and depthwise.
struct SlidingRecipe {
  // Of direct_tiled: `rounds` images of a block, so many of their channels in shared memory at a time, and
  // what is known of the rows. What they hold of its filter gradient: src/plan/conv/filter_tiled.h.
  DirectTile tile;
  int channels = 1;
  // Of depthwise: channels of a thread, and what is known when the kernel is compiled of the axis along which
  // its outputs lie (taps = 0: nothing).
  bool channels_last = false;
  int vector = 1, taps = 0, output_step = 1, tap_step = 1;
  bool uneven = false;  // of both: some places between the strides have a tap less than `taps`, or none
  int lanes_shift = 5, rounds = 1;
  int shared_bytes = 0;
  friend bool operator==(SlidingRecipe const&, SlidingRecipe const&) = default;
};

// Of winograd (cosmati/conv/winograd.h): transforms around a batch of products, of so many images at a time.
struct WinogradRecipe {
  int tile = 0;                     // outputs on a side: 2 or 4; 0: another algorithm
  DataType type = DataType::f32;    // of the transformed image and filters
  bool image_channels_last = true;  // channels are neighbours in the transformed image, else tiles
  bool image_together = false;      // and are read together
  bool filter_inputs_last = true;   // of the transformed filters' channels
  WinogradRun run = WinogradRun::channels;
  Index slice = 0;  // images
  // In the workspace: the product's own, then these, in bytes.
  std::size_t filter = 0, image = 0, sums = 0, end = 0;
  friend bool operator==(WinogradRecipe const&, WinogradRecipe const&) = default;
};

// Of fft (cosmati/conv/fft.h): Fourier transforms around a batch of products, of so many images (of a
// filter's gradient: of so many of a group's input channels) at a time.
struct FftRecipe {
  int rows = 0, columns = 0;            // of a transform; 0: another algorithm
  int tile_rows = 0, tile_columns = 0;  // outputs of a tile, of a filter's gradient those of dy
  int tiles_down = 1, tiles_across = 1;
  DataType real = DataType::f32;    // of the transforms
  DataType factor = DataType::f32;  // of the product's factors
  FftDoubled doubled = FftDoubled::filter;
  Index slice = 0;
  // Transforms of one call.
  int image_chunk = 0, filter_chunk = 0, sums_chunk = 0;
  // In the workspace: the product's own, then these, in bytes. The transforms' work area is work_bytes long.
  std::size_t planes = 0, work = 0, image = 0, filter = 0, sums = 0, end = 0;
  std::size_t work_bytes = 0;
  friend bool operator==(FftRecipe const&, FftRecipe const&) = default;
};

struct ConvolutionRecipe {
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::implicit_gemm;
  // Policy, splits, the accesses of a and b, the result's width. Of algorithms without a main loop only the
  // types matter.
  GemmRecipe product;
  // A step of the main loop has one tap and block_k channels (cosmati/conv/window_source.h).
  bool stepwise = false;
  int launches = 1;  // of a data gradient with strides: of all places between them, or one for each
  UnrollRecipe unroll;
  PackRecipe packing;
  SlidingRecipe sliding;
  MergedShape merged;  // of direct_merged
  WinogradRecipe winograd;
  FftRecipe fft;
  Index images = 0;                   // of image_slices: that are computed at a time
  std::optional<double> slice_error;  // the limit that their plans were given
  std::size_t bias_bytes = 0;  // of workspace, the last: for the bias gradient, alone or with the filter's

  // That the kernels themselves write.
  std::size_t product_workspace() const {
    return unroll.bytes > 0 ? unroll.offset + unroll.bytes : product.flag_bytes + product.partial_bytes;
  }
  bool slides() const {
    return algorithm == ConvolutionAlgorithm::direct_tiled || algorithm == ConvolutionAlgorithm::depthwise;
  }
  bool multiplies_matrices() const { return !is_direct() && !slides() && !is_merged(); }
  bool is_merged() const { return algorithm == ConvolutionAlgorithm::direct_merged; }
  bool is_direct() const { return algorithm == ConvolutionAlgorithm::direct; }
  friend bool operator==(ConvolutionRecipe const&, ConvolutionRecipe const&) = default;
};

}  // namespace cosmati
