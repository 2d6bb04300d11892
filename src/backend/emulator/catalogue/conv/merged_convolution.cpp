// One kernel for each type of sums, which finds its shape in the arguments.
#include "src/backend/emulator/catalogue/conv/merged_convolution.h"

#include <algorithm>

#include "cosmati/conv/direct_merged.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {
namespace {

using HostMerged =
    MergedParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;

constexpr MergedShape emulated_shape() {
  MergedShape shape;
  shape.threads_down = unfixed_merged_threads, shape.threads_across = 1;
  return shape;
}

template <class Sum>
void launch(Grid grid, int shared_bytes, HostMerged const& parameters, int host_threads) {
  using Traits = DirectMergedTraits<emulated_shape(), false, Sum, Sum, Sum, ConvolutionHostEpilogue,
                                    ConvolutionHostDestination>;
  launch_kernel<&direct_merged_kernel<Traits>>(grid, Traits::threads, static_cast<unsigned>(shared_bytes),
                                               parameters, host_threads);
}

}  // namespace

void launch_merged(plan::MergedForm const& merged, plan::MergedGrid const& grid, int shared_bytes,
                   DataType type, reference::ElementEpilogue const& expression, void const* dy, void const* w,
                   void* dx, int host_threads) {
  plan::ConvolutionForm const& form = merged.form;
  if (form.rows() == 0 || form.columns() == 0) return;
  HostMerged parameters{
      merged.window, {plan::digit_arguments(form.d, dx), form.d.type}, {&expression, &form}};
  parameters.window.image = dy;
  parameters.window.filter = w;
  auto* const run = type == DataType::f64   ? &launch<f64>
                    : type == DataType::s32 ? &launch<s32>
                                            : &launch<f32>;
  constexpr Index most_groups = 65535;
  for (Index first = 0; first < grid.z; first += most_groups) {
    parameters.window.first_group = first;
    run({static_cast<int>(grid.x), static_cast<int>(grid.y),
         static_cast<int>(std::min(most_groups, grid.z - first))},
        shared_bytes, parameters, host_threads);
  }
}

}  // namespace cosmati::emulator
