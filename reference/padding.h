// Convolution with explicitly multiplied zero padding.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::reference {

// Like run(), but a tap outside the image, or between the phases of a strided data gradient, adds 0 times its
// filter element (for the filter gradient, its element of dy; if dy has few channels, also elements of x that
// the tap does not reach). If that element is infinite or NaN, this is the other permitted result
// (docs/nonfinite.md).
void run_with_padding(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments);

}  // namespace cosmati::reference
