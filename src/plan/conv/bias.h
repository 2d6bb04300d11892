// The bias gradient, db[k] = sum over n, p, q of dy[n, k, p, q]: a reduction, together with the filter
// gradient or alone.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"

namespace cosmati::plan {

// Bytes of workspace, a multiple of 256; at most `limit`, if the number of parts allows it.
std::size_t bias_workspace(ConvolutionProblem const& problem, Device const& device, std::size_t limit);

// The kernel of the complete plan: `product` (null for the bias alone), whose workspace comes first, then the
// reduction with recipe.bias_bytes of workspace.
std::unique_ptr<Kernel<ConvolutionProblem>> with_bias(Plan<ConvolutionProblem> const& plan,
                                                      std::unique_ptr<Kernel<ConvolutionProblem>> product);

// For problems with only a bias gradient.
Candidate<ConvolutionProblem> bias_candidate();

// The plan of the reduction.
Plan<ReduceProblem> bias_plan(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
