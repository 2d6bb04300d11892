// The emulator's matrix products of f16, summed in f32 and in f16.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

void add_gemm_f16(KernelTable& table) {
  add_simple<Multiply::fma, f16, f16, f32>(table);
  add_simple<Multiply::half2, f16, f16, f16>(table);
}

}  // namespace cosmati::emulator
