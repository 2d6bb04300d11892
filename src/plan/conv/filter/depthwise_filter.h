// The filter gradient of a depthwise convolution: its form, and the number of partial sums.
#pragma once
#include "cosmati/conv/sliding.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct DepthwiseFilterForm {
  ConvolutionForm form;  // with all channels
  DataType image = DataType::f32, gradient = DataType::f32;
  Index image_base = 0, gradient_base = 0;  // added to the tensors' pointers, in elements
  // Pointers are null, there is no epilogue, and the destination is not set.
  DepthwiseFilterParameters<NoEpilogueArguments, NoEpilogueArguments> parameters;
};
DepthwiseFilterForm depthwise_filter_form(ConvolutionProblem const& problem);

Offer<ConvolutionProblem> depthwise_filter(ConvolutionProblem const& problem, Device const& device);

std::string traits_of(DepthwiseFilterPolicy const& policy, KernelTypes const& types);
program::Program depthwise_filter_program(Plan<ConvolutionProblem> const& plan);

DepthwiseFilterSchedule depthwise_filter_schedule(DepthwiseFilterForm const& gradient,
                                                  DepthwiseFilterRecipe const& recipe);
}  // namespace cosmati::plan
