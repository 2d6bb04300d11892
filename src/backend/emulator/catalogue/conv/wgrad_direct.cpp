// The emulator's tiled filter gradients, by accumulator type, taps per row and output step.
#include "cosmati/conv/wgrad_direct.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/filter/wgrad_direct.h"

namespace cosmati::emulator {
namespace {

template <class Sum, bool swapped, int taps, int output_step>
void add(KernelTable& table) {
  using namespace plan;
  constexpr WgradDirectPolicy policy{.threads = emulated_filter_threads,
                                     .run = emulated_filter_run,
                                     .filters = emulated_filter_filters,
                                     .swapped = swapped,
                                     .taps = taps,
                                     .output_step = output_step};
  using Traits =
      WgradDirectTraits<policy, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  using Parameters = typename Traits::Params;
  std::string const traits = traits_of(policy, emulated_types(type_of<Sum>()));
  add_kernel<&wgrad_direct_kernel<Traits>, Parameters>(table, "wgrad_direct_kernel", traits);
  add_kernel<&wgrad_direct_sum_kernel<Traits>, Parameters>(table, "wgrad_direct_sum_kernel", traits);
}

template <class Sum, bool swapped>
void add_of(KernelTable& table) {
  add<Sum, swapped, 1, 1>(table), add<Sum, swapped, 1, 2>(table);
  add<Sum, swapped, 3, 1>(table), add<Sum, swapped, 3, 2>(table);
}

}  // namespace

void add_wgrad_direct(KernelTable& table) {
  for_sums([&]<class Sum>(Sum) { add_of<Sum, false>(table), add_of<Sum, true>(table); });
}

}  // namespace cosmati::emulator
