// Convolutions of more pixels than a kernel's index counts: some images at a time, by any other kernel.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> image_slices(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options);

// The same for slices of so many images, and without the question whether they are needed.
Offer<ConvolutionProblem> slices_of_images(ConvolutionProblem const& problem, Device const& device,
                                           PlanOptions const& options, Index images);

// On the host: one image at a time, so that the bits of each do not depend on the others.
Candidate<ConvolutionProblem> one_image_candidate();

// Slices run one after the other. Of a filter gradient each leaves its sums in the workspace, and they are
// added in the order of the slices.
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_image_slices(Plan<ConvolutionProblem> const& plan);

// How a slice is computed.
Plan<ConvolutionProblem> plan_of_slice(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
