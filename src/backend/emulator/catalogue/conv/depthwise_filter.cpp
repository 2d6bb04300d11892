// Kernels by the type of the sums, and by whether channels lie together.
#include "src/backend/emulator/catalogue/conv/depthwise_filter.h"

#include "cosmati/conv/depthwise_filter.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {
namespace {

using Parameters =
    DepthwiseFilterParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;

template <class Sum, bool channels_last, int vector, int taps, bool swapped>
void launch_both(plan::DepthwiseFilterForm const& gradient, Parameters const& parameters, int host_threads) {
  using Traits = DepthwiseFilterTraits<Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination,
                                       channels_last, vector, taps, swapped>;
  launch_kernel<&depthwise_filter_kernel<Traits>>(
      {static_cast<int>(plan::depthwise_filter_blocks(parameters.schedule))}, Traits::threads,
      sizeof(typename Traits::SharedStorage), parameters, host_threads);
  launch_kernel<&depthwise_filter_sum_kernel<Traits>>(
      {static_cast<int>(plan::depthwise_filter_sum_blocks(gradient))}, Traits::threads, 0, parameters,
      host_threads);
}

using Launch = void (*)(plan::DepthwiseFilterForm const&, Parameters const&, int);

template <class Sum, bool swapped>
Launch launch_of(SlidingRecipe const& recipe) {
  if constexpr (is_same<Sum, f32>)
    if (recipe.vector == 4) return &launch_both<f32, true, 4, 3, swapped>;
  return recipe.channels_last ? &launch_both<Sum, true, 1, 1, swapped>
                              : &launch_both<Sum, false, 1, 1, swapped>;
}

}  // namespace

void launch_depthwise_filter(plan::DepthwiseFilterForm const& from, ConvolutionRecipe const& recipe,
                             DataType type, plan::ConvolutionPointers const& pointers, std::byte* workspace,
                             int host_threads) {
  plan::DepthwiseFilterForm gradient = from;
  plan::ConvolutionForm& form = gradient.form;
  gradient.image = gradient.gradient = type;
  bool const swapped = form.image_is_a;
  Parameters parameters;
  plan::fill_depthwise_filter(parameters, gradient, recipe.sliding, swapped ? pointers.a : pointers.b,
                              swapped ? pointers.b : pointers.a, workspace);
  parameters.d = {plan::digit_arguments(form.d, pointers.d), form.d.type};
  parameters.epilogue = {nullptr, &form};
  SlidingRecipe const& own = recipe.sliding;
  Launch const launch =
      type == DataType::f64   ? (swapped ? launch_of<f64, true>(own) : launch_of<f64, false>(own))
      : type == DataType::s32 ? (swapped ? launch_of<s32, true>(own) : launch_of<s32, false>(own))
                              : (swapped ? launch_of<f32, true>(own) : launch_of<f32, false>(own));
  launch(gradient, parameters, host_threads);
}

}  // namespace cosmati::emulator
