// The filter gradient of a 1x1 convolution where no single stride covers the pixels of all images (NCHW): a
// product for each image, as one batch, then their sum. No pixel is copied, and both factors are read along
// the pixels.
#pragma once
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/gemm.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> image_products(ConvolutionProblem const& problem, Device const& device,
                                         PlanOptions const& options);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_image_products(Plan<ConvolutionProblem> const& plan);

// The plans of the products and of their sum.
Plan<GemmProblem> plan_of_products(Plan<ConvolutionProblem> const& plan);
Plan<ReduceProblem> plan_of_sum(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
