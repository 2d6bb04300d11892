// The emulator's data gradients with few channels: one kernel per accumulator type, which reads its tile
// shape from the arguments.
#include "cosmati/conv/dgrad_small_c.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/dgrad_small_c.h"

namespace cosmati::emulator {

void add_dgrad_small_c(KernelTable& table) {
  for_sums([&]<class Sum>(Sum) {
    constexpr DgradSmallCPolicy policy{plan::emulated_dgrad_small_c_shape(), false};
    using Traits =
        DgradSmallCTraits<policy, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
    add_kernel<&dgrad_small_c_kernel<Traits>, typename Traits::Params>(
        table, "dgrad_small_c_kernel", plan::traits_of(policy, plan::emulated_types(type_of<Sum>())));
  });
}

}  // namespace cosmati::emulator
