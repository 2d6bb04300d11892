// The emulator's convolutions by wgmma from images in shared memory.
#include "cosmati/conv/image_windows.h"

#include <utility>

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/windows/image_windows.h"

namespace cosmati::emulator {
namespace {

template <ImageWindowsShape shape>
void add_image_shape(KernelTable& table) {
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  using Traits = cosmati::ImageWindowsTraits<shape, f16, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_async_kernel<&image_windows_kernel<Traits>, typename Traits::Params>(
      table, "image_windows_kernel",
      plan::ImageWindowsTraits{shape, DataType::f16, types.epilogue, types.destination}.print());
}

template <std::size_t... index>
void add_image_shapes(KernelTable& table, std::index_sequence<index...>) {
  (add_image_shape<plan::emulated_image_windows_shapes[index]>(table), ...);
}

}  // namespace

void add_image_windows(KernelTable& table) {
  add_image_shapes(table, std::make_index_sequence<plan::emulated_image_windows_shapes.size()>());
}

}  // namespace cosmati::emulator
