// The bias gradient, db[k] = sum over n, p, q of dy[n, k, p, q]: a reduction, beside the filter's gradient or
// alone.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"

namespace cosmati::plan {

// Bytes of workspace that it takes, a multiple of 256: at most `limit`, if its parts can be so few.
std::size_t bias_workspace(ConvolutionProblem const& problem, Device const& device, std::size_t limit);

// The whole plan's kernel: `product` (null for the bias alone), whose workspace comes first, then the sum,
// in recipe.bias_bytes of it.
std::unique_ptr<Kernel<ConvolutionProblem>> with_bias(Plan<ConvolutionProblem> const& plan,
                                                      std::unique_ptr<Kernel<ConvolutionProblem>> product);

// For problems that ask for nothing else.
Candidate<ConvolutionProblem> bias_candidate();

// The sum as a plan of its own.
Plan<ReduceProblem> bias_plan(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
