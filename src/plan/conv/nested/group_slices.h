// Convolutions with few groups of many channels: one group after another, each as a convolution without
// groups by any other kernel. x, w and y of a group are parts of the tensors, and are not copied.
#pragma once
#include "src/plan/conv/nested/slices.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> group_slices(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_group_slices(Plan<ConvolutionProblem> const& plan);

// The plan of one group, and the bytes from the arguments of one group to those of the next.
Plan<ConvolutionProblem> plan_of_group(Plan<ConvolutionProblem> const& plan);
SliceSteps steps_of_groups(ConvolutionProblem const& problem);

}  // namespace cosmati::plan
