// The emulator's merged convolutions: one kernel per accumulator type, which reads its tile shape from the
// arguments.
#include "cosmati/conv/dgrad_small_c.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/dgrad_small_c.h"

namespace cosmati::emulator {

void add_dgrad_small_c(KernelTable& table) {
  for_sums([&]<class Sum>(Sum) {
    constexpr MergedShape shape = plan::emulated_merged_shape();
    using Traits =
        DgradSmallCTraits<shape, false, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
    add_kernel<&dgrad_small_c_kernel<Traits>, typename Traits::Params>(
        table, "dgrad_small_c_kernel",
        plan::DgradSmallCTraits{shape, false, plan::emulated_types(type_of<Sum>())}.print());
  });
}

}  // namespace cosmati::emulator
