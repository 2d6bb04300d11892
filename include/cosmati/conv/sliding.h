// Launch parameters of the kernels that slide windows over an image instead of computing a matrix product:
// depthwise and direct_tiled, for the forward direction and for the data gradient, whose windows of dy slide
// in the same way for each phase.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/sliding_policy.h"

namespace cosmati {

// Rows or columns. The position of a tap in the image is origin + output * output_step + tap * tap_step;
// elements exist in [0, size).
struct WindowAxis {
  int outputs = 1, taps = 1;
  int origin = 0, size = 1;
  int output_step = 1, tap_step = 1;
  int number = 0;                             // increment of the pixel's index, m or n, per output
  Index image_stride = 0, filter_stride = 0;  // elements per position, per tap
};

// The range of positions that `outputs` adjacent outputs read along an axis with compile-time taps and steps:
// `places` positions from `lowest`, relative to the first output's tap 0. taps = 0: the positions of one tap.
struct KnownWindow {
  int lowest, places;
};
COSMATI_CONSTEXPR KnownWindow known_window(int taps, int output_step, int tap_step, int outputs) {
  if (taps == 0) return {0, outputs};
  int const reach = (taps - 1) * tap_step;
  return {reach < 0 ? reach : 0, (outputs - 1) * output_step + (reach < 0 ? -reach : reach) + 1};
}

// Output channel j of group g is a sum over `inputs` channels of the image.
struct SlidingArguments {
  void const* image = nullptr;  // element (0, 0)
  void const* filter = nullptr;
  WindowAxis rows, columns;
  int images = 1, image_number = 0;
  int inputs = 1, outputs = 1;  // channels per group
  Index image_stride = 0;       // between images
  Index image_input = 0, filter_input = 0, filter_output = 0;
  Index image_group = 0, filter_group = 0;
};

// The schedule of depthwise. A block has 2^log2_lanes lanes for each of its items. With channels last, lanes
// are channels and an item is a run of columns; otherwise lanes are columns and an item is a run of rows.
struct DepthwiseSchedule {
  int log2_lanes = 5;
  int items_of_block = 1;
  int items = 1;          // images * across * runs
  int channels = 1;       // of the result, all groups
  Divisor channel_tiles;  // blocks along the channels; fastest in the grid
  Divisor runs, across, outputs;
};

template <class Epilogue, class Destination>
struct DepthwiseParameters {
  SlidingArguments window;
  Destination d;
  Epilogue epilogue;
  DepthwiseSchedule schedule;
};

// The layout of a block's part of some images in shared memory, (image, channel, row, column).
struct PlaneSchedule {
  int row_pitch = 1, channel_pitch = 1, image_pitch = 1;  // values
  int rows = 1, columns = 1;                              // including the extent of the windows
  int log2_lanes = 5;                                     // 2^log2_lanes threads load a line
  bool channels_last = false;                             // channels are contiguous in the image
  bool dense = false;   // rows follow each other; they, channels and images begin at vectors
  bool fill = false;    // some positions are outside the image
  Divisor loaded_rows;  // per plane: the maximum that can exist
  Divisor channels;     // loaded at a time
};

// Returns how many contiguous values of a run one shared-memory access reads.
COSMATI_CONSTEXPR int vector_of_run(int run, int value_bytes) {
  int vector = 1;
  while (run % (2 * vector) == 0 && 2 * vector * value_bytes <= 16) vector *= 2;
  return vector;
}
// Returns the values between taps of direct_tiled's filters: with a multiple of 8, more stores would access
// the same bank.
COSMATI_CONSTEXPR int filter_pitch_of(DirectTile const& tile) {
  return tile.filters % 8 == 0 ? tile.filters + 4 : tile.filters;
}

// The schedule of direct_tiled: a block computes one tile of each of `images` images.
struct DirectTileSchedule {
  Index first_group = 0;
  PlaneSchedule planes;
  int images = 1;
  int weights = 0;                   // values of the filters, which precede the planes
  Divisor tiles_down, tiles_across;  // in blocks
  Divisor taps, taps_across;
};

template <class Epilogue, class Destination>
struct DirectTiledParameters {
  SlidingArguments window;
  Destination d;
  Epilogue epilogue;
  DirectTileSchedule schedule;
};

// The schedule of the filter gradient of depthwise.
struct DepthwiseFilterSchedule {
  int log2_lanes = 5;  // 2^log2_lanes lanes: along the channels if these are contiguous, else along columns
  int channels = 1;    // of all groups
  int rows = 1;        // images * rows of outputs
  int rows_of_part = 1;
  int parts = 1;
  Divisor channel_tiles;  // number of channel tiles; fastest in the grid
  Divisor tap_groups;     // number of groups of taps; then the parts
  Divisor taps_across;    // groups of taps per row of the filter
  Divisor image_rows, outputs;
};

// `window.filter` is null; its strides are those of taps in the partial sums.
template <class Epilogue, class Destination>
struct DepthwiseFilterParameters {
  SlidingArguments window;
  void const* gradient = nullptr;
  Index gradient_image = 0, gradient_channel = 0, gradient_row = 0, gradient_column = 0;
  void* partials = nullptr;                       // (parts, channels, rows * columns of taps), of type Sum
  int tap_row_number = 0, tap_column_number = 0;  // increments of the result's index, m or n, per tap
  Destination d;
  Epilogue epilogue;
  DepthwiseFilterSchedule schedule;
};

// The schedule of the filter gradient of direct_tiled. A pass covers `rows` rows of outputs of `images`
// images; each block processes some of the passes.
struct WgradTileSchedule {
  Index first_group = 0, groups = 1;
  PlaneSchedule image, gradient;
  int gradient_at = 0;  // values in shared memory before the gradient's planes
  int images = 1, rows = 1, passes = 1;
  int parts = 1, bias_parts = 1;  // parts of a pass's segments and of its rows, one per thread
  int segment = 1;                // outputs of a row: whole runs, or all
  int filters = 1;                // per block
  int filter_groups = 1;          // per block: groups of a thread's filters
  int weights = 0;                // per group, including the bias sums
  Divisor tiles_down, tile_rows, slots, channels, taps_down, block_filters;
  Divisor segments;  // per row
  Divisor taps, taps_across;
};

// `window.filter` is null.
template <class Epilogue, class Destination>
struct WgradDirectParameters {
  SlidingArguments window;
  void const* gradient = nullptr;
  Index gradient_group = 0, gradient_image = 0, gradient_channel = 0, gradient_row = 0, gradient_column = 0;
  void* partials = nullptr;  // (blocks along x, groups, weights), of type Sum
  // The increments of a weight's index in the result's m or n.
  int channel_number = 0, tap_row_number = 0, tap_column_number = 0;
  void* bias = nullptr;
  Index bias_stride = 0;
  int blocks = 1;  // blocks that wrote partial sums
  Destination d;
  Epilogue epilogue;
  WgradTileSchedule schedule;
};

}  // namespace cosmati
