// Kernels by the type of the sums, the taps in a row, and the step of outputs.
#include "src/backend/emulator/catalogue/conv/filter_tiled.h"

#include "cosmati/conv/filter_tiled.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {
namespace {

using Parameters =
    FilterTiledParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;

Grid as_grid(plan::SlidingGrid const& grid) {
  return {static_cast<int>(grid.x), static_cast<int>(grid.y), static_cast<int>(grid.z)};
}

template <class Sum, bool swapped, int taps, int output_step>
void launch_both(plan::FilterTiledForm const& gradient, SlidingRecipe const& recipe,
                 Parameters const& parameters, int host_threads) {
  using Traits = FilterTiledTraits<plan::emulated_filter_threads, plan::emulated_filter_run,
                                   plan::emulated_filter_filters, Sum, Sum, Sum, ConvolutionHostEpilogue,
                                   ConvolutionHostDestination, swapped, taps, output_step, 1>;
  launch_kernel<&filter_tiled_kernel<Traits>>(as_grid(plan::filter_tiled_grid(gradient, recipe)),
                                              Traits::threads, static_cast<unsigned>(recipe.shared_bytes),
                                              parameters, host_threads);
  launch_kernel<&filter_tiled_sum_kernel<Traits>>(
      as_grid(plan::filter_tiled_sum_grid(gradient, parameters.schedule)), Traits::sum_threads,
      sizeof(typename Traits::SumStorage), parameters, host_threads);
}

using Launch = void (*)(plan::FilterTiledForm const&, SlidingRecipe const&, Parameters const&, int);

template <class Sum, bool swapped>
Launch launch_of(SlidingRecipe const& recipe) {
  if (recipe.taps == 1)
    return recipe.output_step == 1 ? &launch_both<Sum, swapped, 1, 1> : &launch_both<Sum, swapped, 1, 2>;
  return recipe.output_step == 1 ? &launch_both<Sum, swapped, 3, 1> : &launch_both<Sum, swapped, 3, 2>;
}

}  // namespace

void launch_filter_tiled(plan::FilterTiledForm const& from, ConvolutionRecipe const& recipe, DataType type,
                         plan::ConvolutionPointers const& pointers, void* bias, Index bias_stride,
                         std::byte* workspace, int host_threads) {
  plan::FilterTiledForm gradient = from;
  plan::ConvolutionForm& form = gradient.form;
  gradient.image = gradient.gradient = type;
  bool const swapped = form.image_is_a;
  Parameters parameters;
  plan::fill_filter_tiled(parameters, gradient, recipe.sliding, swapped ? pointers.a : pointers.b,
                          swapped ? pointers.b : pointers.a, workspace, bias, bias_stride);
  parameters.d = {plan::digit_arguments(form.d, pointers.d), form.d.type};
  parameters.epilogue = {nullptr, &form};
  SlidingRecipe const& own = recipe.sliding;
  Launch const launch =
      type == DataType::f64   ? (swapped ? launch_of<f64, true>(own) : launch_of<f64, false>(own))
      : type == DataType::s32 ? (swapped ? launch_of<s32, true>(own) : launch_of<s32, false>(own))
                              : (swapped ? launch_of<f32, true>(own) : launch_of<f32, false>(own));
  launch(gradient, own, parameters, host_threads);
}

}  // namespace cosmati::emulator
