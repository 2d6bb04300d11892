// The emulator's convolutions by tensor cores.
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {

LaunchConvolution find_convolution_mma(DataType type, ConvolutionVariant const& variant) {
  constexpr GemmPolicy halves = emulated_policy(MainLoop::multistage, Multiply::mma, 2);
  constexpr GemmPolicy words = emulated_policy(MainLoop::multistage, Multiply::mma, 4);
  return type == DataType::f16 ? convolution_of<halves, f16, f32>(variant)
                               : convolution_of<words, tf32, f32>(variant);
}

}  // namespace cosmati::emulator
