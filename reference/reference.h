// The reference: every operation as naive loops over any type and strides, summed in f64.
// Formulas, shapes and the meaning of each tensor are documented with the problems in cosmati/ops/. No
// function here allocates memory or keeps state. All expect a validated problem and complete arguments.
#pragma once
#include "cosmati/ops/activation.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/gather.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/pooling.h"
#include "cosmati/ops/softmax.h"

namespace cosmati::reference {

// Each operation specializes this template in its own file.
template <class Problem>
void run(Problem const& problem, typename Problem::Arguments const& arguments);

}  // namespace cosmati::reference
