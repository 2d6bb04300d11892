// This library's own kernels of the backend cpu, for operations that libraries lack or compute slowly.
#pragma once
#include <vector>

#include "cosmati/ops/activation.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/pooling.h"
#include "cosmati/ops/softmax.h"

namespace cosmati::cpu {

Candidate<GemmProblem> openblas_candidate();       // f64, products by OpenBLAS
Candidate<GemmProblem> in_order_candidate();       // any types; the products of an element are added in order
Candidate<ConvolutionProblem> im2col_candidate();  // any types, in double, products by OpenBLAS
Candidate<ConvolutionProblem> bias_gradient_candidate();
Candidate<ConvolutionProblem> host_product_candidate();  // 1x1 filters, planned as products
Candidate<PoolingProblem> pooling_candidate();
Candidate<ActivationProblem> activation_candidate();
Candidate<AddProblem> add_candidate();
Candidate<TransformProblem> transform_candidate();
Candidate<DropoutProblem> dropout_candidate();
Candidate<ReduceProblem> reduce_candidate();
Candidate<OptimizerProblem> optimizer_candidate();
Candidate<SoftmaxProblem> softmax_candidate();
Candidate<RowNormProblem> row_norm_candidate();
Candidate<LrnProblem> lrn_candidate();
Candidate<CrossEntropyProblem> cross_entropy_candidate();
Candidate<RbfProblem> rbf_candidate();

}  // namespace cosmati::cpu
