// A convolution with stride 1 with its input and output exchanged: x and y trade places, and the filter is
// rotated by 180 degrees. A data gradient is then a forward convolution of dy, and a filter gradient one
// whose image is dy.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

// Why x and y cannot be exchanged; empty if they can.
std::string mirror_violation(ConvolutionProblem const& problem);

// The problem with x and y exchanged, in the same direction. The filter's first two dimensions are exchanged,
// and its taps have negative strides: pointers to it begin at the last tap. The bias gradient is omitted.
ConvolutionProblem mirrored(ConvolutionProblem problem);

// The number of elements from the first tap of a filter to the last.
Index offset_of_last_tap(TensorDescription const& filter);

}  // namespace cosmati::plan
