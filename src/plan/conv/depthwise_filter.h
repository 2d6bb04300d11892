// The filter's gradient of a depthwise convolution: its form, and how many parts its sums are made in.
#pragma once
#include "cosmati/conv/sliding.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"
#include "src/plan/conv/launch.h"

namespace cosmati::plan {

struct DepthwiseFilterForm {
  ConvolutionForm form;  // with all channels
  DataType image = DataType::f32, gradient = DataType::f32;
  Index image_base = 0, gradient_base = 0;  // added to the tensors', in elements
  // Pointers are null; the epilogue is none, and the result's place is not in it.
  DepthwiseFilterParameters<NoEpilogueArguments, NoEpilogueArguments> parameters;
};
DepthwiseFilterForm depthwise_filter_form(ConvolutionProblem const& problem);

Offer<ConvolutionProblem> depthwise_filter(ConvolutionProblem const& problem, Device const& device);

DepthwiseFilterSchedule depthwise_filter_schedule(DepthwiseFilterForm const& gradient,
                                                  SlidingRecipe const& recipe);
Index depthwise_filter_blocks(DepthwiseFilterSchedule const& schedule);  // of the sums
Index depthwise_filter_sum_blocks(DepthwiseFilterForm const& gradient);

// With the pointers and the schedule of a launch.
template <class Parameters>
void fill_depthwise_filter(Parameters& parameters, DepthwiseFilterForm const& gradient,
                           SlidingRecipe const& recipe, void const* image, void const* dy, void* partials) {
  auto const& own = gradient.parameters;
  parameters.window = own.window;
  parameters.window.image = moved(image, gradient.image_base, gradient.image);
  parameters.gradient = moved(dy, gradient.gradient_base, gradient.gradient);
  parameters.gradient_image = own.gradient_image;
  parameters.gradient_channel = own.gradient_channel;
  parameters.gradient_row = own.gradient_row;
  parameters.gradient_column = own.gradient_column;
  parameters.partials = partials;
  parameters.tap_row_number = own.tap_row_number;
  parameters.tap_column_number = own.tap_column_number;
  parameters.schedule = depthwise_filter_schedule(gradient, recipe);
}

}  // namespace cosmati::plan
