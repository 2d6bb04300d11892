// The emulator's filter gradients of filters of one tap: one kernel per order of the result, which reads its
// numbers of channels and pixels from the arguments.
#include "src/plan/conv/filter/wgrad_pointwise.h"
#include "cosmati/conv/pointwise/wgrad_pointwise_sum.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"

namespace cosmati::emulator {
namespace {

template <bool swapped>
void add(KernelTable& table) {
  constexpr WgradPointwiseShape shape = plan::emulated_wgrad_pointwise_shape();
  using Traits =
      WgradPointwiseTraits<shape, false, swapped, f16, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  using Parameters = typename Traits::Params;
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  std::string const traits =
      plan::WgradPointwiseTraits{shape, false, swapped, DataType::f16, types.epilogue, types.destination}
          .print();
  add_kernel<&wgrad_pointwise_kernel<Traits>, Parameters>(table, "wgrad_pointwise_kernel", traits);
  add_kernel<&wgrad_pointwise_sum_kernel<Traits>, Parameters>(table, "wgrad_pointwise_sum_kernel", traits);
}

}  // namespace

void add_wgrad_pointwise(KernelTable& table) { add<false>(table), add<true>(table); }

}  // namespace cosmati::emulator
