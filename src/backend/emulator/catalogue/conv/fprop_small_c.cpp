// The emulator's forward convolutions of few channels, which read their tile shape from the arguments: one
// kernel per type of factors, way of loading them, and place of a pixel.
#include "cosmati/conv/small_c/fprop_small_c.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/fprop_small_c.h"

namespace cosmati::emulator {
namespace {

// Results are collected as elements of this type.
struct CollectingDestination : ConvolutionHostDestination {
  using Element = f16;
};

template <class Element, DataType type, bool async, int place, bool collects = false>
void add(KernelTable& table) {
  constexpr FpropSmallCShape shape = plan::emulated_fprop_small_c_shape(async, place, collects);
  using Traits = FpropSmallCTraits<shape, false, Element, ConvolutionHostEpilogue, CollectingDestination>;
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  add_kernel<&fprop_small_c_kernel<Traits>, typename Traits::Params>(
      table, "fprop_small_c_kernel",
      plan::FpropSmallCTraits{shape, false, type, types.epilogue, types.destination}.print());
}

template <class Element, DataType type>
void add_all(KernelTable& table) {
  constexpr int size = static_cast<int>(sizeof(Element));
  add<Element, type, false, unfixed_fprop_place>(table);
  add<Element, type, true, unfixed_fprop_bytes[0] / size>(table);
  add<Element, type, true, unfixed_fprop_bytes[1] / size>(table);
}

}  // namespace

void add_fprop_small_c(KernelTable& table) {
  add_all<f16, DataType::f16>(table);
  add<f16, DataType::f16, true, unfixed_flat_place>(table);
  add<f16, DataType::f16, true, unfixed_fprop_bytes[0] / 2, true>(table);
  add_all<tf32, DataType::tf32>(table);
}

}  // namespace cosmati::emulator
