// The emulator's filter gradients with all taps from one copy of x.
#include "cosmati/conv/wgrad_taps.h"

#include <utility>

#include "cosmati/conv/wgrad_taps_sum.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/filter/wgrad_taps.h"

namespace cosmati::emulator {
namespace {

template <WgradTapsShape shape>
void add_shape(KernelTable& table) {
  using Traits = cosmati::WgradTapsTraits<f16, shape>;
  add_async_kernel<&wgrad_taps_kernel<Traits>, WgradTapsParameters>(
      table, "wgrad_taps_kernel", plan::WgradTapsTraits{DataType::f16, shape}.print());
}

template <bool in_runs, bool swapped>
void add_sum(KernelTable& table) {
  constexpr WgradTapsSumPolicy policy{
      .slices = plan::emulated_wgrad_taps_slices, .in_runs = in_runs, .swapped = swapped};
  using Traits = cosmati::WgradTapsSumTraits<policy, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_kernel<&wgrad_taps_sum_kernel<Traits>, typename Traits::Params>(
      table, "wgrad_taps_sum_kernel",
      plan::WgradTapsSumTraits{policy, "HostEpilogue", "HostDestination"}.print());
}

template <std::size_t... index>
void add_shapes(KernelTable& table, std::index_sequence<index...>) {
  (add_shape<plan::emulated_wgrad_taps_shapes[index]>(table), ...);
}

}  // namespace

void add_wgrad_taps(KernelTable& table) {
  add_shapes(table, std::make_index_sequence<plan::emulated_wgrad_taps_shapes.size()>());
  add_sum<false, false>(table), add_sum<false, true>(table), add_sum<true, false>(table);
}

}  // namespace cosmati::emulator
