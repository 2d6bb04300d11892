// The emulator's merged convolutions: one kernel per accumulator type, which reads its tile shape from the
// arguments.
#include "cosmati/conv/direct_merged.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/direct_merged.h"

namespace cosmati::emulator {

void add_direct_merged(KernelTable& table) {
  for_sums([&]<class Sum>(Sum) {
    constexpr MergedShape shape = plan::emulated_merged_shape();
    using Traits =
        DirectMergedTraits<shape, false, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
    add_kernel<&direct_merged_kernel<Traits>, typename Traits::Params>(
        table, "direct_merged_kernel",
        plan::DirectMergedTraits{shape, false, plan::emulated_types(type_of<Sum>())}.print());
  });
}

}  // namespace cosmati::emulator
