// The emulator's matrix products with few rows.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

void add_gemm_few_rows(KernelTable& table) {
  constexpr GemmPolicy policy = emulated_policy(MainLoop::gemv, Multiply::fma);
  add_widths<policy, f32, f32, f32>(table), add_widths<policy, f64, f64, f64>(table);
  add_widths<policy, s32, s32, s32>(table), add_widths<policy, f16, f16, f32>(table);
}

}  // namespace cosmati::emulator
