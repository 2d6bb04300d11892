// The emulator's matrix products by instructions of single threads.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

void add_gemm_floats(KernelTable& table) {
  add_simple<Multiply::fma, f32, f32, f32>(table);
  add_directions<emulated_policy(MainLoop::multistage, Multiply::fma, 4, Partition::stream_k), f32, f32, f32,
                 1>(table);
  add_simple<Multiply::fma, f64, f64, f64>(table);
  add_simple<Multiply::fma, s32, s32, s32>(table);
}

}  // namespace cosmati::emulator
