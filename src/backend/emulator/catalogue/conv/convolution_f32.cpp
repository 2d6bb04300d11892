// The emulator's convolutions of f32.
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {

LaunchConvolution find_convolution_f32(MainLoop main_loop, ConvolutionVariant const& variant) {
  constexpr GemmPolicy buffered = emulated_policy(MainLoop::double_buffered, Multiply::fma);
  constexpr GemmPolicy staged = emulated_policy(MainLoop::multistage, Multiply::fma);
  return main_loop == MainLoop::multistage ? convolution_of<staged, f32, f32>(variant)
                                           : convolution_of<buffered, f32, f32>(variant);
}

}  // namespace cosmati::emulator
