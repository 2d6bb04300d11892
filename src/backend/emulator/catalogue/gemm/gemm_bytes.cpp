// The emulator's matrix products of 8-bit integers, signed and unsigned.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

void add_gemm_bytes(KernelTable& table) {
  add_simple<Multiply::dp4a, s8, s8, s32>(table), add_simple<Multiply::dp4a, s8, u8, s32>(table);
  add_simple<Multiply::dp4a, u8, s8, s32>(table), add_simple<Multiply::dp4a, u8, u8, s32>(table);
}

}  // namespace cosmati::emulator
