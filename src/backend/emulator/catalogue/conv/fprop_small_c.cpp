// The emulator's forward convolutions of few channels, which read their tile shape from the arguments: one
// kernel per type of factors and way of loading them.
#include "cosmati/conv/small_c/fprop_small_c.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/fprop_small_c.h"

namespace cosmati::emulator {
namespace {

template <class Element, DataType type, bool async>
void add(KernelTable& table) {
  constexpr FpropSmallCShape shape = plan::emulated_fprop_small_c_shape(async, type);
  using Traits =
      FpropSmallCTraits<shape, false, Element, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  add_kernel<&fprop_small_c_kernel<Traits>, typename Traits::Params>(
      table, "fprop_small_c_kernel",
      plan::FpropSmallCTraits{shape, false, type, types.epilogue, types.destination}.print());
}

}  // namespace

void add_fprop_small_c(KernelTable& table) {
  add<f16, DataType::f16, false>(table);
  add<f16, DataType::f16, true>(table);
  add<tf32, DataType::tf32, false>(table);
  add<tf32, DataType::tf32, true>(table);
}

}  // namespace cosmati::emulator
