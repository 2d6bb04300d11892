// The composed kernels of a depthwise filter gradient: the sums, and what adds their parts.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

inline bool is_depthwise_filter(Plan<ConvolutionProblem> const& plan) {
  return plan.recipe.algorithm == ConvolutionAlgorithm::depthwise &&
         plan.problem.direction == ConvolutionDirection::filter;
}

enum class DepthwiseFilterPass { sums, parts };
jit::Source depthwise_filter_source(Plan<ConvolutionProblem> const& plan, DepthwiseFilterPass pass);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_depthwise_filter(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::cuda
