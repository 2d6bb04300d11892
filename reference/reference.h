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

void run(GemmProblem const& problem, GemmProblem::Arguments const& arguments);
void run(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments);
void run(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments);
void run(ActivationProblem const& problem, ActivationProblem::Arguments const& arguments);
void run(BatchNormProblem const& problem, BatchNormProblem::Arguments const& arguments);
void run(RowNormProblem const& problem, RowNormProblem::Arguments const& arguments);
void run(LrnProblem const& problem, LrnProblem::Arguments const& arguments);
void run(SoftmaxProblem const& problem, SoftmaxProblem::Arguments const& arguments);
void run(CrossEntropyProblem const& problem, CrossEntropyProblem::Arguments const& arguments);
void run(RbfProblem const& problem, RbfProblem::Arguments const& arguments);
void run(AddProblem const& problem, AddProblem::Arguments const& arguments);
void run(DropoutProblem const& problem, DropoutProblem::Arguments const& arguments);
void run(TransformProblem const& problem, TransformProblem::Arguments const& arguments);
void run(ReduceProblem const& problem, ReduceProblem::Arguments const& arguments);
void run(ElementwiseProblem const& problem, ElementwiseProblem::Arguments const& arguments);
void run(GatherProblem const& problem, GatherProblem::Arguments const& arguments);
void run(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments);

}  // namespace cosmati::reference
