// The emulator's convolutions on tensor cores.
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"

namespace cosmati::emulator {

void add_products_mma(KernelTable& table) {
  add_all_widths<emulated_policy(MainLoop::multistage, Multiply::mma, 2), DataType::f16, f16, f32>(table);
  add_all_widths<emulated_policy(MainLoop::multistage, Multiply::mma, 4), DataType::tf32, tf32, f32>(table);
}

}  // namespace cosmati::emulator
