// The emulator's grouped convolution on tensor cores, which reads its shape from the arguments.
#include "cosmati/conv/grouped.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/grouped.h"

namespace cosmati::emulator {

void add_grouped(KernelTable& table) {
  constexpr GroupedShape shape = plan::emulated_grouped_shape();
  using Traits = GroupedTraits<shape, false, f16, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  add_kernel<&grouped_kernel<Traits>, typename Traits::Params>(
      table, "grouped_kernel",
      plan::GroupedTraits{shape, false, DataType::f16, types.epilogue, types.destination}.print());
}

}  // namespace cosmati::emulator
