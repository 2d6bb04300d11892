// On the backend cpu, a forward convolution with a 1x1 filter as a matrix product of pixels and filters,
// planned as such.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

Candidate<ConvolutionProblem> host_product_candidate();

}  // namespace cosmati::plan
