// The emulator's convolutions of f64, of 8-bit integers by dp4a, of s32, and those with one thread per
// element.
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {

void add_products(KernelTable& table) {
  constexpr GemmPolicy bytes = emulated_policy(MainLoop::double_buffered, Multiply::dp4a);
  constexpr GemmPolicy single = emulated_policy(MainLoop::double_buffered, Multiply::fma);
  add_narrow<single, DataType::f64, f64, f64>(table);
  add_narrow<single, DataType::s32, s32, s32>(table);
  add_all_widths<bytes, DataType::s8, s8, s32>(table);
}

void add_direct(KernelTable& table) {
  for_sums([&]<class Sum>(Sum) {
    using Traits = DirectTraits<Sum, Sum, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
    add_kernel<&direct_of_phases_kernel<Traits, max_phases_of_launch>, ConvolutionHostPhases>(
        table, "direct_of_phases_kernel", plan::DirectTraits{plan::emulated_types(type_of<Sum>())}.print(),
        max_phases_of_launch);
  });
}

}  // namespace cosmati::emulator
