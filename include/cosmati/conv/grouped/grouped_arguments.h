// Launch parameters of the grouped convolution on tensor cores.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/grouped/grouped_shape.h"

namespace cosmati {

// The outputs along an axis that are congruent modulo the number of phases: output o of phase f is position o
// * phases + f of the result, and reads tap t, tap first_tap + t * tap_step of the filter, from position
// origin + o * step + t * dilation of the image.
struct GroupedPhase {
  int origin = 0, outputs = 0, taps = 0, first_tap = 0;
};
inline constexpr int max_grouped_phases = 4;
struct GroupedPhases {
  GroupedPhase phase[max_grouped_phases];
  Divisor count;
  Index filter_tap = 0;  // elements between taps of the filter
  int tap_step = 1;
};

// Strides in elements; the channels of the image are contiguous.
struct GroupedArguments {
  void const* image = nullptr;
  void const* filter = nullptr;
  Index image_stride = 0;
  int image_row = 0, image_column = 0;
  int images = 0, image_rows = 0, image_columns = 0, image_channels = 0;
  Index filter_group = 0, filter_output = 0, filter_input = 0;
  GroupedPhases rows, columns;
  int groups = 1;                                           // of the convolution
  int number_image = 0, number_row = 0, number_column = 0;  // increments of the pixel's index m
  int tiles = 0, slots = 1;                                 // slots: blocks that share the tiles of a part
  Divisor parts, tiles_across, tiles_down;                  // parts: of the groups
  GroupedShape shape;                                       // for a kernel compiled without a fixed shape
};

template <class Epilogue, class Destination>
struct GroupedParameters {
  GroupedArguments window;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
