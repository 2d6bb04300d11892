// The emulator's convolutions of f64, of bytes by dp4a and of s32.
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {

LaunchConvolution find_convolution_simple(DataType type, ConvolutionVariant const& variant) {
  constexpr GemmPolicy bytes = emulated_policy(MainLoop::double_buffered, Multiply::dp4a);
  constexpr GemmPolicy single = emulated_policy(MainLoop::double_buffered, Multiply::fma);
  ConvolutionVariant const narrow{false, false, variant.stepwise};
  switch (type) {
    case DataType::f64: return convolution_of<single, f64, f64>(narrow);
    case DataType::s8: return convolution_of<bytes, s8, s32>(variant);
    default: return convolution_of<single, s32, s32>(narrow);
  }
}

}  // namespace cosmati::emulator
