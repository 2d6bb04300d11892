// The emulator's depthwise filter gradients, by accumulator type and by whether channels are contiguous.
#include "cosmati/conv/depthwise_filter.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/filter/depthwise_filter.h"

namespace cosmati::emulator {
namespace {

template <class Sum, bool channels_last, int vector, int taps, bool swapped>
void add(KernelTable& table) {
  constexpr DepthwiseFilterPolicy policy{channels_last, vector, taps, swapped};
  using Traits =
      DepthwiseFilterTraits<policy, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  using Parameters = typename Traits::Params;
  std::string const traits = plan::traits_of(policy, plan::emulated_types(type_of<Sum>()));
  add_kernel<&depthwise_filter_kernel<Traits>, Parameters>(table, "depthwise_filter_kernel", traits);
  add_kernel<&depthwise_filter_sum_kernel<Traits>, Parameters>(table, "depthwise_filter_sum_kernel", traits);
}

template <class Sum, bool swapped>
void add_of(KernelTable& table) {
  if constexpr (is_same<Sum, f32>) add<Sum, true, 4, 3, swapped>(table);
  add<Sum, true, 1, 1, swapped>(table);
  add<Sum, false, 1, 1, swapped>(table);
}

}  // namespace

void add_depthwise_filter(KernelTable& table) {
  for_sums([&]<class Sum>(Sum) { add_of<Sum, false>(table), add_of<Sum, true>(table); });
}

}  // namespace cosmati::emulator
