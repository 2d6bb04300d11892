// Convolutions with more pixels than a kernel's index range, computed some images at a time by any other
// kernel.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> image_slices(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options);

// The same for slices of a given number of images, even if slicing is unnecessary.
Offer<ConvolutionProblem> slices_of_images(ConvolutionProblem const& problem, Device const& device,
                                           PlanOptions const& options, Index images);

// On the host: one image at a time, so that results do not depend on the batch.
Candidate<ConvolutionProblem> one_image_candidate();

// Slices run consecutively. For the filter gradient, each slice stores its sums in the workspace, and they
// are added in slice order.
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_image_slices(Plan<ConvolutionProblem> const& plan);

// The plan of one slice.
Plan<ConvolutionProblem> plan_of_slice(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
