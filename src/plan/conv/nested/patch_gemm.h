// The data gradient of a convolution whose windows are patches that do not overlap (stride = taps, as in the
// first layer of a vision transformer): one matrix product gives all pixels of all patches, and a copy moves
// them to their places in dx. Each phase of such a gradient has a single tap, and with many phases the
// kernels for phases multiply matrices of few columns.
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
