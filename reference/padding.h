// Convolution whose padding is zeros that are multiplied.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::reference {

// As run(), but a tap that falls outside the image, or between the windows of a data gradient with strides,
// adds 0 times its element of the filter (of a filter's gradient, of dy): the other result that is permitted
// where that element is infinite or NaN (docs/nonfinite.md).
void run_with_padding(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments);

}  // namespace cosmati::reference
