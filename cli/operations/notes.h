// Facts about a problem, beyond its tensors, that verify and bench need, whether it comes from options, files
// or recordings.
#pragma once
#include <string>

#include "cli/operations/task.h"
#include "cli/options/epilogue_options.h"
#include "cosmati/ops/activation.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/pooling.h"
#include "cosmati/ops/softmax.h"

namespace cosmati::cli {

// `format` of images, e.g. "nchw"; `letters` of the operands' layouts, e.g. "tn"; `expression` for the label,
// empty for the default epilogue.
Notes notes_of(GemmProblem const& problem, BoundEpilogue const& epilogue, std::string const& letters,
               std::string const& expression);
Notes notes_of(ElementwiseProblem const& problem, BoundEpilogue const& epilogue);
Notes notes_of(PoolingProblem const& problem, std::string const& format);
Notes notes_of(ActivationProblem const& problem);
Notes notes_of(BatchNormProblem const& problem, std::string const& format);
Notes notes_of(RowNormProblem const& problem);
// The largest error that rounding permits, for each element of each output, as f64 arrays; infinite where
// sums may overflow. Takes host pointers.
std::vector<Tensor> row_norm_bounds(RowNormProblem const& problem,
                                    RowNormProblem::Arguments const& arguments);
Notes notes_of(LrnProblem const& problem, std::string const& format);
Notes notes_of(SoftmaxProblem const& problem);
Notes notes_of(CrossEntropyProblem const& problem);
Notes notes_of(RbfProblem const& problem);
Notes notes_of(AddProblem const& problem);
Notes notes_of(DropoutProblem const& problem);
Notes notes_of(TransformProblem const& problem, std::string const& from, std::string const& to);
Notes notes_of(ReduceProblem const& problem);
Notes notes_of(OptimizerProblem const& problem);

// "nchw", "nhwc" or "chwn" for a dense array with the first two dimensions n and c; otherwise "strided".
std::string format_text(TensorDescription const& tensor);

}  // namespace cosmati::cli
