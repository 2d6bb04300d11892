// The emulator's convolutions with groups by wgmma.
#include "cosmati/conv/grouped/group_windows.h"

#include <utility>

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/grouped/group_windows.h"

namespace cosmati::emulator {
namespace {

template <GroupWindowsShape shape>
void add_shape(KernelTable& table) {
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  using Traits = cosmati::GroupWindowsTraits<shape, f16, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_async_kernel<&group_windows_kernel<Traits>, typename Traits::Params>(
      table, "group_windows_kernel",
      plan::GroupWindowsTraits{shape, DataType::f16, types.epilogue, types.destination}.print());
}

template <std::size_t... index>
void add_shapes(KernelTable& table, std::index_sequence<index...>) {
  (add_shape<plan::emulated_group_windows_shapes[index]>(table), ...);
}

}  // namespace

void add_group_windows(KernelTable& table) {
  add_shapes(table, std::make_index_sequence<plan::emulated_group_windows_shapes.size()>());
}

}  // namespace cosmati::emulator
