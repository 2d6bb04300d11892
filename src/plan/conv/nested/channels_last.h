// Convolutions of tensors whose channels are not contiguous, or whose pixels do not begin where TMA requires,
// computed on copies in which they are and do.
#pragma once
#include <vector>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"

namespace cosmati::plan {

// For kernels that read runs of channels: mma.sync and, if the passes of `transform` are faster than packing
// and single stores, wgmma, whose result is copied, too.
Offer<ConvolutionProblem> channels_last(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

// Copies the operands into the workspace, runs the convolution that reads the copies, and copies its result.
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_channels_last(Plan<ConvolutionProblem> const& plan);

// The plan of the convolution that reads the copies, and the plans of the copies.
Plan<ConvolutionProblem> plan_of_copied(Plan<ConvolutionProblem> const& plan);
std::vector<Plan<TransformProblem>> plans_of_copies(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
