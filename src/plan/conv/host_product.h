// On the backend cpu, a forward convolution with one tap as a product of pixels and filters, which the
// planner of matrix products plans.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

Candidate<ConvolutionProblem> host_product_candidate();

}  // namespace cosmati::plan
