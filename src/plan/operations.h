// The list of all operations, from which per-operation code is generated.
//
// `each` is a macro of two arguments: the problem's type, and its name in records, commands and messages.
#pragma once
#include "cosmati/ops/activation.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/gather.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/grouped_gemm.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/optimizer_group.h"
#include "cosmati/ops/pooling.h"
#include "cosmati/ops/softmax.h"

// The operations that `run`, `verify`, `bench` and `find` take as single problems, in the order of the help.
// Each specializes reference::run, plan::lower (primitives), candidates and cli::subjects_of.
#define COSMATI_EACH_OPERATION(each)                                                               \
  each(GemmProblem, "gemm") each(ConvolutionProblem, "conv") each(PoolingProblem, "pool")          \
      each(ActivationProblem, "activation") each(BatchNormProblem, "batchnorm")                    \
          each(RowNormProblem, "row-norm") each(SoftmaxProblem, "softmax") each(LrnProblem, "lrn") \
              each(CrossEntropyProblem, "cross-entropy") each(RbfProblem, "rbf")                   \
                  each(DropoutProblem, "dropout") each(TransformProblem, "transform")              \
                      each(ReduceProblem, "reduce") each(AddProblem, "add")                        \
                          each(ElementwiseProblem, "elementwise") each(OptimizerProblem, "optimizer")

// The operations that networks use and that COSMATI_RECORD counts, but that cannot be replayed.
#define COSMATI_EACH_COUNTED_OPERATION(each) \
  each(OptimizerGroupProblem, "optimizer-group") each(GatherProblem, "gather")

#define COSMATI_EACH_RECORDED_OPERATION(each) \
  COSMATI_EACH_OPERATION(each)                \
  each(GroupedGemmProblem, "gemm-group") COSMATI_EACH_COUNTED_OPERATION(each)
