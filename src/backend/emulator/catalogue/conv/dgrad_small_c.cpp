// The emulator's data gradients with few channels, which read their tile shape from the arguments: one kernel
// per accumulator type, and one per type of factors on tensor cores.
#include "cosmati/conv/dgrad_small_c.h"
#include "cosmati/conv/dgrad_small_c_mma.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/dgrad_small_c.h"
#include "src/plan/conv/dgrad_small_c_mma.h"

namespace cosmati::emulator {
namespace {

template <class Element>
void add_cells(KernelTable& table, DataType type) {
  constexpr CellShape shape = plan::emulated_cell_shape();
  using Traits =
      DgradSmallCMmaTraits<shape, false, Element, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  add_kernel<&dgrad_small_c_mma_kernel<Traits>, typename Traits::Params>(
      table, "dgrad_small_c_mma_kernel",
      plan::DgradSmallCMmaTraits{shape, false, type, types.epilogue, types.destination}.print());
}

}  // namespace

void add_dgrad_small_c(KernelTable& table) {
  for_sums([&]<class Sum>(Sum) {
    constexpr DgradSmallCPolicy policy{plan::emulated_dgrad_small_c_shape(), false};
    using Traits =
        DgradSmallCTraits<policy, Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
    add_kernel<&dgrad_small_c_kernel<Traits>, typename Traits::Params>(
        table, "dgrad_small_c_kernel", plan::traits_of(policy, plan::emulated_types(type_of<Sum>())));
  });
  add_cells<f16>(table, DataType::f16);
  add_cells<tf32>(table, DataType::tf32);
}

}  // namespace cosmati::emulator
