// The parameters of a GPU convolution kernel, compiled or emulated, beyond its name.
#pragma once
#include <optional>
#include <variant>

#include "cosmati/conv/depthwise/depthwise_rows_shape.h"
#include "cosmati/conv/depthwise/depthwise_tile_arguments.h"
#include "cosmati/conv/dgrad_small_c_shape.h"
#include "cosmati/conv/fft/fft_policy.h"
#include "cosmati/conv/grouped/group_windows_shape.h"
#include "cosmati/conv/image_windows_shape.h"
#include "cosmati/conv/sliding_policy.h"
#include "cosmati/conv/wgrad_taps_shape.h"
#include "cosmati/conv/winograd/winograd_policy.h"
#include "cosmati/ops/gemm_recipe.h"

namespace cosmati {

// Convolution algorithms: kernels of include/cosmati/conv/; `gemm`, a kernel of include/cosmati/gemm/;
// image_slices, which applies another algorithm to a few images at a time; group_slices, to one group at a
// time; depth_taps, which applies other algorithms to the planes of volumes; channels_last, which applies one
// to copies of the operands; image_products, matrix products and a reduction; and patch_gemm, a matrix
// product and a copy.
enum class ConvolutionAlgorithm : unsigned char {
  implicit_gemm,
  direct,
  direct_tiled,
  dgrad_small_c,
  unroll_gemm,
  depthwise,
  depthwise_rows,
  gemm,
  winograd,
  fft,
  image_slices,
  depth_taps,
  wgrad_taps,
  channels_last,
  grouped,
  fprop_small_c,
  wgrad_small_c,
  wgrad_pointwise,
  dgrad_phases,
  image_products,
  patch_gemm,
  group_windows,
  group_slices,
  image_windows
};

// The matrix that unroll_gemm writes before the product (cosmati/conv/unroll.h): lines contiguous along
// `along`, written in vectors of `width`.
struct UnrollRecipe {
  Along along = Along::k;
  int width = 1;
  // A slice covers `slice` values of digit `digit` of the pixel index (filter gradient: of the tap index).
  int digit = 0;
  Index slice = 0;
  std::size_t bytes = 0;   // size of the largest slice, in the type read by the product
  std::size_t offset = 0;  // in the workspace
  friend bool operator==(UnrollRecipe const&, UnrollRecipe const&) = default;
};

// Operands that are copied to the workspace with contiguous channels in units of 16 bytes, before TMA unrolls
// them (cosmati/conv/packing.h). With rows > 0 a position of the packed image holds that many rows, `place`
// elements including padding, and the taps of a row become channels of one window. With `pads`, only the
// result of a filter gradient is packed: TMA fills the channels that x lacks with zeros. With `by_taps`, TMA
// stores a packed result to dw, without the channels that dw lacks; otherwise another pass unpacks it.
struct PackRecipe {
  bool image = false, other = false;   // whether the operand with windows is packed; whether the other one is
  bool pads = false, by_taps = false;  // of a filter gradient, see above
  bool transposes = false;             // of a filter gradient: dy becomes contiguous along the pixels
  int rows = 0, place = 0;
  std::size_t of_image = 0, of_other = 0, of_result = 0,
              end = 0;  // offsets in the workspace in bytes, after the product's own
  friend bool operator==(PackRecipe const&, PackRecipe const&) = default;
};

// The recipe of direct_tiled (cosmati/conv/direct_tiled.h), except for filter gradients.
struct DirectTiledRecipe {
  DirectTile tile;
  int images = 1, channels = 1;  // per block: images, and channels in shared memory at a time
  KnownAxis rows;
  int shared_bytes = 0;
  friend bool operator==(DirectTiledRecipe const&, DirectTiledRecipe const&) = default;
};

// The recipe of direct_tiled for filter gradients (cosmati/conv/wgrad_direct.h).
struct WgradDirectRecipe {
  int images = 1, rows = 1;         // per pass
  int filters = 1;                  // per block
  int run = 1, thread_filters = 1;  // per thread: outputs of a row, and filters
  int segment = 1;                  // outputs that a thread processes at a time: whole runs, or a row
  int blocks = 1;                   // blocks that share the passes
  int log2_threads = 5;             // per block
  KnownAxis columns;
  int shared_bytes = 0;
  friend bool operator==(WgradDirectRecipe const&, WgradDirectRecipe const&) = default;
};

// The recipe of depthwise (cosmati/conv/depthwise.h), except for filter gradients: channels per thread, and
// the axis of its outputs.
struct DepthwiseRecipe {
  bool channels_last = false;
  int vector = 1, log2_lanes = 5, rounds = 1;
  KnownAxis axis;
  int shared_bytes = 0;
  friend bool operator==(DepthwiseRecipe const&, DepthwiseRecipe const&) = default;
};

// The recipe of depthwise for filter gradients (cosmati/conv/depthwise_filter.h): channels and taps per
// thread, and the parts of the sums.
struct DepthwiseFilterRecipe {
  bool channels_last = false;
  int vector = 1, taps = 1, log2_lanes = 5, parts = 1;
  int shared_bytes = 0;
  friend bool operator==(DepthwiseFilterRecipe const&, DepthwiseFilterRecipe const&) = default;
};

// The recipe of depthwise_rows (cosmati/conv/depthwise/depthwise_rows.h), except for filter gradients.
struct DepthwiseRowsRecipe {
  DepthwiseRowsShape shape;
  int store_width = 1;     // contiguous channels per store
  int groups_of_part = 1;  // groups of rows of results per thread
  friend bool operator==(DepthwiseRowsRecipe const&, DepthwiseRowsRecipe const&) = default;
};

// The recipe of depthwise_rows for filter gradients (cosmati/conv/depthwise/depthwise_rows_filter.h).
struct DepthwiseRowsFilterRecipe {
  DepthwiseRowsShape shape;
  bool ragged = false;       // the last run of a row is shorter
  int lanes = 1, slots = 1;  // per block: vectors of channels by items
  int groups_of_part = 1;    // rows of dy per item
  int parts = 1;             // blocks that share the items of a tile of channels
  int shared_bytes = 0;
  friend bool operator==(DepthwiseRowsFilterRecipe const&, DepthwiseRowsFilterRecipe const&) = default;
};

// The recipe of depthwise_rows for filter gradients with few pixels
// (cosmati/conv/depthwise/depthwise_tile_filter.h).
struct DepthwiseTileRecipe {
  DepthwiseTileShape shape;
  int rows = 1, row_parts = 1;  // a unit has so many rows of dy; units of an image
  int units_of_block = 1;
  int shared_bytes = 0;
  friend bool operator==(DepthwiseTileRecipe const&, DepthwiseTileRecipe const&) = default;
};

// The recipe of winograd (cosmati/conv/winograd/winograd.h): transforms around a batch of products, for a
// number of images at a time.
struct WinogradRecipe {
  int tile = 0;                     // outputs on a side: 2 or 4; 0: another algorithm
  int taps = 3;                     // of a part of the filter, on a side: 3 or 5
  DataType type = DataType::f32;    // type of the transformed image and filters
  bool image_channels_last = true;  // in the transformed image, channels are contiguous, otherwise tiles
  bool image_together = false;      // a thread loads several channels as one vector
  bool filter_inputs_last = true;   // channels are contiguous in the transformed filters (input channels) or
                                    // dy
  WinogradRun run = WinogradRun::channels;
  Index slice = 0;  // images per slice
  // Offsets in the workspace in bytes, after the product's own part.
  std::size_t filter = 0, image = 0, sums = 0, end = 0;
  constexpr int size() const { return tile + taps - 1; }  // rows and columns of a transformed tile
  friend bool operator==(WinogradRecipe const&, WinogradRecipe const&) = default;
};

// The recipe of fft (cosmati/conv/fft/fft.h): Fourier transforms around a batch of products, for a number of
// images at a time (filter gradient: input channels of a group).
struct FftRecipe {
  int rows = 0, columns = 0;            // size of a transform; 0: another algorithm
  int tile_rows = 0, tile_columns = 0;  // outputs per tile; for the filter gradient, elements of dy
  int tiles_down = 1, tiles_across = 1;
  DataType real = DataType::f32;    // type of the transforms
  DataType factor = DataType::f32;  // type of the product's factors
  FftDoubled doubled = FftDoubled::filter;
  Index slice = 0;
  // Number of transforms per call.
  int image_chunk = 0, filter_chunk = 0, sums_chunk = 0;
  // Offsets in the workspace in bytes, after the product's own part. The transforms' work area has work_bytes
  // bytes.
  std::size_t planes = 0, work = 0, image = 0, filter = 0, sums = 0, end = 0;
  std::size_t work_bytes = 0;
  friend bool operator==(FftRecipe const&, FftRecipe const&) = default;
};

// The recipe of dgrad_small_c (cosmati/conv/dgrad_small_c.h).
struct DgradSmallCRecipe {
  DgradSmallCShape shape;
  int shared_bytes = 0;
  friend bool operator==(DgradSmallCRecipe const&, DgradSmallCRecipe const&) = default;
};

// The recipe of wgrad_taps (cosmati/conv/wgrad_taps.h): the outputs are divided into parts, whose sums are
// added last, by `sum_slices` threads for each run of sums.
struct WgradTapsRecipe {
  WgradTapsShape shape;
  int parts = 1, sum_slices = 1;
  bool sum_in_runs = false;
  friend bool operator==(WgradTapsRecipe const&, WgradTapsRecipe const&) = default;
};

// The recipe of group_windows, convolutions with groups by wgmma (cosmati/conv/grouped/group_windows.h):
// `shares` blocks divide the steps of each 64 channels of the image.
struct GroupWindowsRecipe {
  GroupWindowsShape shape;
  int shares = 1;
  friend bool operator==(GroupWindowsRecipe const&, GroupWindowsRecipe const&) = default;
};

// The recipe of image_windows, convolutions by wgmma from images in shared memory
// (cosmati/conv/image_windows.h).
struct ImageWindowsRecipe {
  ImageWindowsShape shape;
  friend bool operator==(ImageWindowsRecipe const&, ImageWindowsRecipe const&) = default;
};

// The recipe of algorithms that run other plans: image_slices, one after another, each for `images` images;
// with images = 0, depth_taps, one after another, one per tap along the depth; channels_last, a single one;
// group_slices, one per group; image_products, one product per image; patch_gemm, one product.
struct SlicesRecipe {
  Index images = 0;
  std::optional<double> max_error;  // limit for the plans of the slices
  bool along_k = false;             // patch_gemm: the matrix of patches is contiguous along the product's k
  friend bool operator==(SlicesRecipe const&, SlicesRecipe const&) = default;
};

struct ConvolutionRecipe {
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::implicit_gemm;
  // Policy, splits, the access to a and b, and the width of result vectors. For algorithms without a main
  // loop, only the types are used.
  GemmRecipe product;
  // Each step of the main loop covers one tap and block_k channels (cosmati/conv/window_source.h).
  bool stepwise = false;
  int launches = 1;  // for a strided data gradient: one for all phases, or one per phase

  // The algorithm's own parameters; none for direct, gemm, and implicit_gemm unless by warp_specialized.
  std::variant<std::monostate, PackRecipe, UnrollRecipe, DirectTiledRecipe, WgradDirectRecipe,
               DepthwiseRecipe, DepthwiseFilterRecipe, DepthwiseRowsRecipe, DepthwiseRowsFilterRecipe,
               DepthwiseTileRecipe, DgradSmallCRecipe, WinogradRecipe, FftRecipe, SlicesRecipe,
               WgradTapsRecipe, GroupWindowsRecipe, ImageWindowsRecipe>
      own;
  std::size_t bias_bytes =
      0;  // at the end of the workspace, for the bias gradient (alone or with the filter gradient)

  // The workspace that the kernels themselves use, in bytes.
  std::size_t product_workspace() const {
    if (!unrolls()) return product.flag_bytes + product.partial_bytes;
    auto const& unroll = std::get<UnrollRecipe>(own);
    return unroll.offset + unroll.bytes;
  }
  bool unrolls() const {
    auto const* const unroll = std::get_if<UnrollRecipe>(&own);
    return unroll != nullptr && unroll->bytes > 0;
  }
  bool slides() const {
    return algorithm == ConvolutionAlgorithm::direct_tiled || algorithm == ConvolutionAlgorithm::depthwise ||
           algorithm == ConvolutionAlgorithm::depthwise_rows;
  }
  bool multiplies_matrices() const {
    return !is_direct() && !slides() && !is_dgrad_small_c() &&
           algorithm != ConvolutionAlgorithm::fprop_small_c &&
           algorithm != ConvolutionAlgorithm::wgrad_small_c &&
           algorithm != ConvolutionAlgorithm::wgrad_pointwise &&
           algorithm != ConvolutionAlgorithm::wgrad_taps && algorithm != ConvolutionAlgorithm::grouped &&
           algorithm != ConvolutionAlgorithm::group_windows &&
           algorithm != ConvolutionAlgorithm::image_windows;
  }
  bool is_dgrad_small_c() const { return algorithm == ConvolutionAlgorithm::dgrad_small_c; }
  bool is_direct() const { return algorithm == ConvolutionAlgorithm::direct; }
  friend bool operator==(ConvolutionRecipe const&, ConvolutionRecipe const&) = default;
};

}  // namespace cosmati
