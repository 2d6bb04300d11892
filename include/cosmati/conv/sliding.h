// What a launch hands to the kernels that see no matrix in a convolution, but windows that slide over an
// image: depthwise and direct_tiled. Forward, and the data gradient, whose windows of dy slide the same way
// for each place between the strides.
#pragma once
#include "cosmati/conv/arguments.h"

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

// Of depthwise. Threads of a block: 2^lanes_shift lanes, and the items that they share among them. With
// channels last, lanes are channels and an item is a run of columns; else lanes are columns and an item is a
// run of rows.
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

// Of direct_tiled.
struct DirectTileSchedule {
  Index first_group = 0;
  int channels = 1;            // that are in shared memory at a time
  Divisor halo_columns, halo;  // halo: rows * columns of the tile with what its windows reach
  Divisor tiles_down, tiles_across;
  bool channels_last = false;  // the image's neighbours are channels
  Divisor channels_at_a_time;
};

template <class Epilogue, class Destination>
struct DirectTiledParameters {
  SlidingArguments window;
  Destination d;
  Epilogue epilogue;
  DirectTileSchedule schedule;
};

// Of the filter's gradient of depthwise.
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

}  // namespace cosmati
