// A convolution without strides, seen from its output: x is the sum of windows of y, with the filter turned
// around. A data gradient is then a forward convolution of dy, and a filter gradient one whose image is dy.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

// Why the problem has no such view; empty if it has.
std::string mirror_violation(ConvolutionProblem const& problem);

// The problem with x and y exchanged, in the same direction. The filter's first two dimensions are exchanged,
// and its taps have negative strides: pointers to it begin at the last tap. Without bias gradient.
ConvolutionProblem mirrored(ConvolutionProblem problem);

// Elements from the first tap of a filter to the last.
Index last_tap(TensorDescription const& filter);

}  // namespace cosmati::plan
