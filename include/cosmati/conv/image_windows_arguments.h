// Launch parameters of image_windows.
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/image_windows_shape.h"

namespace cosmati {

// Output (p, q) reads tap (r, s) from row p + r * dilation + top and column q + s * dilation + left of the
// image.
struct ImageWindowsArguments {
  arch::TensorMap image;   // boxes of a tile: (channels, columns, rows, images)
  arch::TensorMap filter;  // boxes of a tap: (adjacent channels, the other channels, columns, rows of taps)
  int top = 0, left = 0;
  int outputs_down = 0, outputs_across = 0, outputs = 0;    // outputs: channels of the result
  int number_image = 0, number_row = 0, number_column = 0;  // increments of the pixel's index m
  int chunks = 1;                                           // of 64 summed channels
  int tiles = 0;
  Divisor parts, tiles_across, tiles_down;  // parts: of 64 channels of the result
};

template <class Epilogue, class Destination>
struct ImageWindowsParameters {
  ImageWindowsArguments window;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
