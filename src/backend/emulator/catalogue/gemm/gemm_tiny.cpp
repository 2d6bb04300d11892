// The emulator's products of tiny matrices, by single threads and by mma.sync.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {
namespace {

template <Multiply multiply, class ElementA, class ElementB, class Sum>
void add(KernelTable& table) {
  add_widths<emulated_policy(MainLoop::tiny, multiply, static_cast<int>(sizeof(ElementA))), ElementA,
             ElementB, Sum>(table);
}

}  // namespace

void add_gemm_tiny(KernelTable& table) {
  add<Multiply::fma, f32, f32, f32>(table), add<Multiply::fma, f64, f64, f64>(table);
  add<Multiply::fma, s32, s32, s32>(table), add<Multiply::fma, f16, f16, f32>(table);
  add<Multiply::half2, f16, f16, f16>(table);
  add<Multiply::dp4a, s8, s8, s32>(table), add<Multiply::dp4a, s8, u8, s32>(table);
  add<Multiply::dp4a, u8, s8, s32>(table), add<Multiply::dp4a, u8, u8, s32>(table);
  add<Multiply::mma, f16, f16, f32>(table), add<Multiply::mma, bf16, bf16, f32>(table);
  add<Multiply::mma, tf32, tf32, f32>(table), add<Multiply::mma, f16, f16, f16>(table);
}

}  // namespace cosmati::emulator
