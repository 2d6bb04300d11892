// The filter gradient for few small filters: its form, and the assignment of images to blocks.
#pragma once
#include "cosmati/conv/sliding.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/filter/wgrad_small_c.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::plan {

// Whether the recipe is one of direct_tiled for a filter gradient.
inline bool is_wgrad_direct(ConvolutionRecipe const& recipe) {
  return std::holds_alternative<WgradDirectRecipe>(recipe.own);
}
// Whether the kernel also computes the bias gradient, which requires that db has the accumulator type. On
// tensor cores dy is a factor of a product, which tf32 would truncate.
inline bool makes_bias_gradient(ConvolutionProblem const& problem, ConvolutionRecipe const& recipe) {
  bool const can =
      is_wgrad_direct(recipe) || (recipe.algorithm == ConvolutionAlgorithm::wgrad_small_c &&
                                  problem.y.type != DataType::tf32 && !exchanges_images(problem));
  return can && problem.db.present() && problem.db.type == recipe.product.sum;
}

struct WgradDirectForm {
  ConvolutionForm form;
  DataType image = DataType::f32, gradient = DataType::f32;
  Index image_base = 0, gradient_base = 0;  // added to the tensors' pointers, in elements
  // Pointers are null, there is no epilogue, and the destination is not set.
  WgradDirectParameters<NoEpilogueArguments, NoEpilogueArguments> parameters;
};
WgradDirectForm wgrad_direct_form(ConvolutionProblem const& problem);

std::string traits_of(WgradDirectPolicy const& policy, KernelTypes const& types);
program::Program wgrad_direct_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> wgrad_direct(ConvolutionProblem const& problem, Device const& device);

inline constexpr int emulated_filter_threads = 128, emulated_filter_run = 4, emulated_filter_filters = 2;

WgradTileSchedule wgrad_direct_schedule(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe,
                                        bool bias);
SlidingGrid wgrad_direct_grid(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe);
SlidingGrid wgrad_direct_sum_grid(WgradDirectForm const& gradient, WgradTileSchedule const& schedule);

// Adds the pointers and the schedule of a launch; no bias gradient if `bias` is null.
template <class Parameters>
void fill_wgrad_direct(Parameters& parameters, WgradDirectForm const& gradient,
                       WgradDirectRecipe const& recipe, void const* image, void const* dy, void* partials,
                       void* bias, Index bias_stride) {
  auto const& own = gradient.parameters;
  parameters.window = own.window;
  parameters.window.image = moved(image, gradient.image_base, gradient.image);
  parameters.gradient = moved(dy, gradient.gradient_base, gradient.gradient);
  parameters.gradient_group = own.gradient_group;
  parameters.gradient_image = own.gradient_image;
  parameters.gradient_channel = own.gradient_channel;
  parameters.gradient_row = own.gradient_row;
  parameters.gradient_column = own.gradient_column;
  parameters.partials = partials;
  parameters.channel_number = own.channel_number;
  parameters.tap_row_number = own.tap_row_number;
  parameters.tap_column_number = own.tap_column_number;
  parameters.bias = bias;
  parameters.bias_stride = bias_stride;
  parameters.blocks = recipe.blocks;
  parameters.schedule = wgrad_direct_schedule(gradient, recipe, bias != nullptr);
}

}  // namespace cosmati::plan
