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

// For operations whose problems contain all facts; specialized next to each operation.
template <class Problem>
Notes notes_of(Problem const& problem);

// `format` of images, e.g. "nchw"; `letters` of the operands' layouts, e.g. "tn"; `expression` for the label,
// empty for the default epilogue.
Notes notes_of(GemmProblem const& problem, BoundEpilogue const& epilogue, std::string const& letters,
               std::string const& expression);
Notes notes_of(ElementwiseProblem const& problem, BoundEpilogue const& epilogue);
Notes notes_of(PoolingProblem const& problem, std::string const& format);
Notes notes_of(BatchNormProblem const& problem, std::string const& format);
Notes notes_of(LrnProblem const& problem, std::string const& format);
Notes notes_of(TransformProblem const& problem, std::string const& from, std::string const& to);

// "nchw", "nhwc" or "chwn" for a dense array with the first two dimensions n and c; otherwise "strided".
std::string format_text(TensorDescription const& tensor);

}  // namespace cosmati::cli
