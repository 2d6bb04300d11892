// Launch parameters of depthwise_rows, whose threads walk down the image.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/depthwise/depthwise_rows_shape.h"

namespace cosmati {

// The image is x or, for a data gradient, dy.
struct DepthwiseRowsArguments {
  void const* image = nullptr;
  void const* filter = nullptr;
  int height = 1, width = 1;              // of the image
  int row_origin = 0, column_origin = 0;  // first image row of the first step, first image column of the
                                          // first run
  int result_height = 1, result_width = 1;
  int result_row_origin = 0, result_column_origin = 0;      // first result row of the first group, first
                                                            // result column of the first run
  Index image_batch = 0, image_channel = 0, image_row = 0;  // strides, in elements
  int image_column = 0;
  Index filter_channel = 0, filter_row = 0, filter_column = 0;
  Index result_image = 0, result_channel = 0, result_row = 0;
  int result_column = 0;
  int image_number = 0, row_number = 0, column_number = 0;  // increments of the pixel's index, m or n
  bool swapped = false;                                     // m is the channel, n the pixel
  // If shape.dilated: the padding of the undilated tensors, which the other fields then describe.
  int pad_row = 0, pad_column = 0;
};

// Thread order, fastest first: vectors of channels or runs of a row, whichever is contiguous; then runs or
// parts of the rows; then parts or channels; then images.
struct DepthwiseRowsSchedule {
  Divisor first, second, third;
  int threads = 0;  // of all blocks
  int groups = 1, groups_of_part = 1;
  Divisor row_phases, column_phases;  // dilations; an image is (image, row phase, column phase)
};

template <class Epilogue, class Destination>
struct DepthwiseRowsParameters {
  DepthwiseRowsArguments all;
  Destination d;
  Epilogue epilogue;
  DepthwiseRowsSchedule schedule;
};

// The arguments of a filter gradient. The origins are the position in x that tap 0 of output 0 reads.
struct DepthwiseRowsFilterArguments {
  void const* image = nullptr;
  void const* gradient = nullptr;
  int height = 1, width = 1;  // of x
  int row_origin = 0, column_origin = 0;
  int gradient_width = 1;
  int pad_row = 0, pad_column = 0;  // if shape.dilated, as above
  int image_column = 0, gradient_column = 0;
  Index image_batch = 0, image_channel = 0, image_row = 0;  // strides, in elements
  Index gradient_image = 0, gradient_channel = 0, gradient_row = 0;
};

// A block has `lanes` vectors of channels by `slots` items; an item is a part of the rows of one run of
// columns of an image.
struct DepthwiseRowsFilterSchedule {
  Divisor tiles, lanes;  // blocks along the channels, fastest in the grid; vectors of a block
  Divisor runs, row_parts;
  int channels = 1, slots = 1;
  int items = 1, items_at_a_time = 1;  // of all parts
  int parts = 1;
  int groups = 1, groups_of_part = 1;  // rows of dy
  Divisor row_phases, column_phases;   // as above
};

template <class Epilogue, class Destination>
struct DepthwiseRowsFilterParameters {
  DepthwiseRowsFilterArguments all;
  void* partials = nullptr;                       // (parts, channels, taps), of type Sum
  int tap_row_number = 0, tap_column_number = 0;  // increments of the result's index, m or n, per tap
  bool swapped = false;                           // m is the tap, n the channel
  Destination d;
  Epilogue epilogue;
  DepthwiseRowsFilterSchedule schedule;
};

}  // namespace cosmati
