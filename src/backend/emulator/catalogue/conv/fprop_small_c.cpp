// The emulator's forward convolutions of few channels, which read their tile shape from the arguments: one
// kernel per type of factors.
#include "cosmati/conv/small_c/fprop_small_c.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/fprop_small_c.h"

namespace cosmati::emulator {
namespace {

template <class Element>
void add(KernelTable& table, DataType type) {
  constexpr FpropSmallCShape shape = plan::emulated_fprop_small_c_shape();
  using Traits =
      FpropSmallCTraits<shape, false, Element, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  add_kernel<&fprop_small_c_kernel<Traits>, typename Traits::Params>(
      table, "fprop_small_c_kernel",
      plan::FpropSmallCTraits{shape, false, type, types.epilogue, types.destination}.print());
}

}  // namespace

void add_fprop_small_c(KernelTable& table) {
  add<f16>(table, DataType::f16);
  add<tf32>(table, DataType::tf32);
}

}  // namespace cosmati::emulator
