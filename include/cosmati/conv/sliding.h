// A convolution as windows that slide over an image: what the kernels take that see no matrix in it. Forward,
// and the data gradient, whose windows of dy slide the same way for each place between the strides.
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

}  // namespace cosmati
