// Launch parameters of the kernel dgrad_small_c.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/dgrad_small_c_shape.h"

namespace cosmati {

// Strides in elements.
struct DgradSmallCArguments {
  void const* image = nullptr;   // dy
  void const* filter = nullptr;  // tap (0, 0)
  int inputs = 1, outputs = 1;   // channels per group of dy and dx
  Index image_stride = 0, image_group = 0, filter_group = 0;
  int image_input = 0, image_row = 0, image_column = 0;  // within an image
  int filter_input = 0, filter_output = 0, filter_row = 0, filter_column = 0;
  int image_rows = 0, image_columns = 0;  // of dy
  // The first position of dy in the window of cell (0, 0).
  int top = 0, left = 0;
  int height = 0, width = 0;                                // of dx
  int number_image = 0, number_row = 0, number_column = 0;  // increments of the pixel's index, m or n
  bool swapped = false;                                     // m of the result is the channel, n the pixel
  Divisor tiles_down, tiles_across;
  Index first_group = 0;
  DgradSmallCShape shape;  // for a kernel compiled without a fixed shape
};

template <class Epilogue, class Destination>
struct DgradSmallCParameters {
  DgradSmallCArguments window;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
