// This library's own kernels of the backend cpu, for operations that libraries lack or compute slowly.
#pragma once
#include <vector>

#include "cosmati/ops/activation.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/pooling.h"
#include "cosmati/ops/softmax.h"

namespace cosmati::cpu {

Candidate<GemmProblem> openblas_candidate();       // f64, products by OpenBLAS
Candidate<GemmProblem> openblas_f32_candidate();   // f32
Candidate<GemmProblem> in_order_candidate();       // any types; the products of an element are added in order
Candidate<ConvolutionProblem> im2col_candidate();  // any types, in double, products by OpenBLAS
Candidate<ConvolutionProblem> bias_gradient_candidate();
Candidate<ConvolutionProblem> host_product_candidate();  // 1x1 filters, planned as products
Candidate<ConvolutionProblem> host_winograd_candidate();
Candidate<BatchNormProblem> batch_norm_then_activation_candidate();

// The single kernel of a primitive; specialized next to it.
template <class Problem>
Candidate<Problem> own_candidate();

}  // namespace cosmati::cpu
