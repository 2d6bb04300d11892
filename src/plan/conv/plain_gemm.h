// Convolutions with a 1x1 filter, no padding and stride 1 as matrix products, with the planner and all
// kernels of matrix products.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"

namespace cosmati::plan {

// (batch, m, n) is (group, pixel, channel) or (image, pixel, channel); for filter gradients (group, k, c).
struct PlainGemm {
  GemmProblem problem;
  std::string refusal;  // not empty: why the convolution is not a matrix product
};
PlainGemm plain_gemm_problem(ConvolutionProblem const& problem);

// A filter gradient whose images have no common stride: (image, k, c), one product for each image, to be
// added. Its result is dense, in the type of the sums.
PlainGemm products_of_images(ConvolutionProblem const& problem);

Offer<ConvolutionProblem> plain_gemm(ConvolutionProblem const& problem, Device const& device,
                                     PlanOptions const& options);

// Returns the plan of the GEMM within a convolution's plan for `gemm`.
Plan<GemmProblem> plan_of_product(Plan<ConvolutionProblem> const& plan);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_plain_gemm(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
