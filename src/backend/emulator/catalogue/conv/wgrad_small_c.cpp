// The emulator's filter gradients of few channels, which read their tile shape from the arguments: one kernel
// per type, number of elements of a pixel, way of loading them and order of the result.
#include "cosmati/conv/small_c/wgrad_small_c_sum.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/filter/wgrad_small_c.h"

namespace cosmati::emulator {
namespace {

template <class Element, DataType type, int place, bool async, bool swapped>
void add(KernelTable& table) {
  constexpr WgradSmallCShape shape = plan::emulated_wgrad_small_c_shape(place, async);
  using Traits = WgradSmallCTraits<shape, unfixed_wgrad_tiles, false, swapped, Element,
                                   ConvolutionHostEpilogue, ConvolutionHostDestination>;
  using Parameters = typename Traits::Params;
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  std::string const traits =
      plan::WgradSmallCTraits{shape,          unfixed_wgrad_tiles, false, swapped, type,
                              types.epilogue, types.destination}
          .print();
  add_kernel<&wgrad_small_c_kernel<Traits>, Parameters>(table, "wgrad_small_c_kernel", traits);
  add_kernel<&wgrad_small_c_sum_kernel<Traits>, Parameters>(table, "wgrad_small_c_sum_kernel", traits);
}

template <class Element, DataType type, int place, bool async>
void add_both(KernelTable& table) {
  add<Element, type, place, async, false>(table);
  add<Element, type, place, async, true>(table);
}

}  // namespace

void add_wgrad_small_c(KernelTable& table) {
  add_both<f16, DataType::f16, 4, false>(table);
  add_both<f16, DataType::f16, 8, false>(table);
  add_both<f16, DataType::f16, unfixed_fprop_bytes[0] / 2, true>(table);
  add_both<f16, DataType::f16, unfixed_fprop_bytes[1] / 2, true>(table);
  add_both<tf32, DataType::tf32, 4, false>(table);
}

}  // namespace cosmati::emulator
