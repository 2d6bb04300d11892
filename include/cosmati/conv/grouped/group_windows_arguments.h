// Launch parameters of group_windows.
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/grouped/group_windows_shape.h"

namespace cosmati {

// Output (p, q) reads tap (r, s) from row p * step + r * dilation + top and column q * step + s * dilation +
// left of the image.
struct GroupWindowsArguments {
  arch::TensorMap image[2];  // boxes of each phase: (channels, columns, rows, images)
  arch::TensorMap filter;    // a box: (adjacent channels, the other channels, columns, rows of taps)
  int top = 0, left = 0;
  int outputs_down = 0, outputs_across = 0, images = 0;
  int groups = 1;                                           // of the convolution
  int number_image = 0, number_row = 0, number_column = 0;  // increments of the pixel's index m
  int steps = 0, shares = 1;                                // shares: blocks that divide the steps of a part
  Divisor parts, steps_across, steps_down;                  // parts: of the groups
};

template <class Epilogue, class Destination>
struct GroupWindowsParameters {
  GroupWindowsArguments window;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
