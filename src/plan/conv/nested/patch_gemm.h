// Gradients of convolutions whose windows are patches that do not overlap (stride = taps, as in the first
// layer of a vision transformer), or single pixels with a stride. The data gradient is one matrix product,
// which gives all pixels of all patches, and a copy, which moves them to their places in dx: each of its
// phases has a single tap, and with many phases the kernels for phases multiply matrices of few columns. The
// filter gradient is a copy of the patches, side by side, and one product, which reads them in full rows.
#pragma once
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/gemm.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> patch_gemm(ConvolutionProblem const& problem, Device const& device,
                                     PlanOptions const& options);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_patch_gemm(Plan<ConvolutionProblem> const& plan);

// The plans of the product and of the copy.
Plan<GemmProblem> plan_of_patches(Plan<ConvolutionProblem> const& plan);
Plan<TransformProblem> plan_of_places(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
