// The emulator's unrolling kernels: by element size and direction, single elements or, of words along k, 16
// bytes.
#include "src/backend/emulator/catalogue/conv/unroll.h"

#include <algorithm>

#include "cosmati/conv/unroll.h"
#include "src/plan/conv/unroll.h"

namespace cosmati::emulator {
namespace {

using LaunchUnroll = void (*)(Grid grid, UnrollParameters const& parameters, int host_threads);

template <class Bits, Along along, int width>
void launch_unroll(Grid grid, UnrollParameters const& parameters, int host_threads) {
  using Source = WindowSource<Bits, along, width, DepthDigits::each, true>;
  launch_kernel<&unroll_kernel<Source>>(grid, unroll_threads, 0, parameters, host_threads);
}

template <class Bits>
LaunchUnroll narrow(Along along) {
  return along == Along::depth ? &launch_unroll<Bits, Along::depth, 1>
                               : &launch_unroll<Bits, Along::outer, 1>;
}

}  // namespace

void const* unroll(plan::ConvolutionForm const& form, UnrollRecipe const& recipe, void const* image,
                   std::byte* workspace, int host_threads) {
  int const size = size_of(form.unrolled.type);
  UnrollRecipe launched = recipe;
  bool const wide = size == 4 && recipe.along == Along::depth && recipe.width >= 4;
  launched.width = wide ? 4 : 1;
  LaunchUnroll const run = wide        ? &launch_unroll<unsigned, Along::depth, 4>
                           : size == 1 ? narrow<unsigned char>(recipe.along)
                           : size == 2 ? narrow<unsigned short>(recipe.along)
                           : size == 4 ? narrow<unsigned>(recipe.along)
                                       : narrow<unsigned long long>(recipe.along);
  plan::UnrollLaunch launch = plan::unroll_launch(form, launched, image, workspace);
  constexpr Index most_groups = 65535;
  for (Index first = 0; first < form.groups && launch.blocks > 0; first += most_groups) {
    launch.parameters.first_batch = first;
    run({static_cast<int>(launch.blocks), 1, static_cast<int>(std::min(most_groups, form.groups - first))},
        launch.parameters, host_threads);
  }
  return launch.parameters.to;
}

}  // namespace cosmati::emulator
