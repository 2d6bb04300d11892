// Launch parameters of the kernels that slide windows over an image instead of forming a matrix product:
// depthwise and direct_tiled. Forward, and the data gradient, whose windows of dy slide in the same way for
// each phase.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/direct_tile.h"

namespace cosmati {

// Rows or columns. A tap's place in the image is origin + output * output_step + tap * tap_step; elements
// exist in [0, size).
struct WindowAxis {
  int outputs = 1, taps = 1;
  int origin = 0, size = 1;
  int output_step = 1, tap_step = 1;
  int number = 0;                             // what one output adds to the pixel's index, m or n
  Index image_stride = 0, filter_stride = 0;  // a place, a tap further; in elements, as all strides
};

// The places that `outputs` neighboring outputs see along an axis whose taps and steps a kernel knows, from
// `lowest`, relative to the first output's tap 0. taps = 0: those of one tap.
struct KnownWindow {
  int lowest, places;
};
COSMATI_CONSTEXPR KnownWindow known_window(int taps, int output_step, int tap_step, int outputs) {
  if (taps == 0) return {0, outputs};
  int const reach = (taps - 1) * tap_step;
  return {reach < 0 ? reach : 0, (outputs - 1) * output_step + (reach < 0 ? -reach : reach) + 1};
}

// Output channel j of group g sums `inputs` channels of the image.
struct SlidingArguments {
  void const* image = nullptr;  // place (0, 0)
  void const* filter = nullptr;
  WindowAxis rows, columns;
  int images = 1, image_number = 0;
  int inputs = 1, outputs = 1;  // channels of a group
  Index image_stride = 0;       // from image to image
  Index image_input = 0, filter_input = 0, filter_output = 0;
  Index image_group = 0, filter_group = 0;
};

// The schedule of depthwise. A block has 2^lanes_shift lanes for each of its items. With channels last, lanes
// are channels and an item is a run of columns; otherwise lanes are columns and an item is a run of rows.
struct DepthwiseSchedule {
  int lanes_shift = 5;
  int items_of_block = 1;
  int items = 1;          // images * across * runs
  int channels = 1;       // of all groups' results
  Divisor channel_tiles;  // blocks along the channels; the fastest of the grid
  Divisor runs, across, outputs;
};

template <class Epilogue, class Destination>
struct DepthwiseParameters {
  SlidingArguments window;
  Destination d;
  Epilogue epilogue;
  DepthwiseSchedule schedule;
};

// How a block's part of some images lies in shared memory, (image, channel, row, column).
struct PlaneSchedule {
  int row_pitch = 1, channel_pitch = 1, image_pitch = 1;  // values
  int rows = 1, columns = 1;                              // with what the windows reach
  int lanes_shift = 5;                                    // 2^lanes_shift threads load a line
  bool channels_last = false;                             // the image's neighbors are channels
  bool fill = false;                                      // some places are outside of the image
  Divisor loaded_rows;                                    // of a plane: as many as can exist
  Divisor channels;                                       // at a time
};

// Neighbors of a run of values that one access of shared memory brings.
COSMATI_CONSTEXPR int vector_of_run(int run, int value_bytes) {
  int vector = 1;
  while (run % (2 * vector) == 0 && 2 * vector * value_bytes <= 16) vector *= 2;
  return vector;
}
// Values from tap to tap of direct_tiled's filters: of stores with a multiple of 8 between them more meet one
// bank.
COSMATI_CONSTEXPR int filter_pitch_of(DirectTile const& tile) {
  return tile.filters % 8 == 0 ? tile.filters + 4 : tile.filters;
}

// The schedule of direct_tiled: a block computes one tile of each of `images` images.
struct DirectTileSchedule {
  Index first_group = 0;
  PlaneSchedule planes;
  int images = 1;
  int weights = 0;                   // values of the filters, which are before the planes
  Divisor tiles_down, tiles_across;  // blocks
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
  int lanes_shift = 5;  // 2^lanes_shift lanes: channels where those lie together, else columns
  int channels = 1;     // of all groups
  int rows = 1;         // images * rows of outputs
  int rows_of_part = 1;
  int parts = 1;
  Divisor channel_tiles;  // of the grid: the fastest,
  Divisor tap_groups;     // then groups of taps, then parts
  Divisor taps_across;    // groups of taps in a row of the filter
  Divisor image_rows, outputs;
};

// `window.filter` is null; its strides are those of taps in the partial sums.
template <class Epilogue, class Destination>
struct DepthwiseFilterParameters {
  SlidingArguments window;
  void const* gradient = nullptr;
  Index gradient_image = 0, gradient_channel = 0, gradient_row = 0, gradient_column = 0;
  void* partials = nullptr;                       // (parts, channels, rows * columns of taps), of type Sum
  int tap_row_number = 0, tap_column_number = 0;  // what a tap adds to its index in the result, m or n
  Destination d;
  Epilogue epilogue;
  DepthwiseFilterSchedule schedule;
};

// The schedule of the filter gradient of direct_tiled. A pass covers `rows` rows of outputs of `images`
// images; each block processes some of the passes.
struct FilterTileSchedule {
  Index first_group = 0, groups = 1;
  PlaneSchedule image, gradient;
  int gradient_at = 0;  // values of shared memory before the gradient's planes
  int images = 1, rows = 1, passes = 1;
  int parts = 1, bias_parts = 1;  // of a pass's rows, to threads
  int filters = 1;                // of a block
  int weights = 0;                // of a group, with its sums for the bias
  Divisor tiles_down, tile_rows, slots, channels, taps_down, block_filters;
  Divisor taps, taps_across;
};

// `window.filter` is null.
template <class Epilogue, class Destination>
struct FilterTiledParameters {
  SlidingArguments window;
  void const* gradient = nullptr;
  Index gradient_group = 0, gradient_image = 0, gradient_channel = 0, gradient_row = 0, gradient_column = 0;
  void* partials = nullptr;  // (blocks along x, groups, weights), of type Sum
  // What one more adds to the number of a weight in the result's m or n.
  int channel_number = 0, tap_row_number = 0, tap_column_number = 0;
  void* bias = nullptr;
  Index bias_stride = 0;
  int blocks = 1;  // that left partial sums
  Destination d;
  Epilogue epilogue;
  FilterTileSchedule schedule;
};

}  // namespace cosmati
