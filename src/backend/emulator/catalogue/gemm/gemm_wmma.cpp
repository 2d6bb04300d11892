// The emulator's matrix products by WMMA: with single-element loads for any layout; for f16 also with
// full-width copies.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {
namespace {

template <MainLoop main_loop, class Element>
constexpr GemmPolicy policy = emulated_policy(main_loop, Multiply::wmma, static_cast<int>(sizeof(Element)));

template <class Element, class Sum>
void add_both(KernelTable& table) {
  add_directions<policy<MainLoop::multistage, Element>, Element, Element, Sum, 1>(table);
  add_directions<policy<MainLoop::double_buffered, Element>, Element, Element, Sum, 1>(table);
}

}  // namespace

void add_gemm_wmma(KernelTable& table) {
  add_both<f64, f64>(table), add_both<tf32, f32>(table), add_both<bf16, f32>(table);
  add_both<f16, f32>(table), add_both<f16, f16>(table);
  add_both<s8, s32>(table), add_both<u8, s32>(table);
  add_directions<policy<MainLoop::multistage, f16>, f16, f16, f32, 8>(table);
}

}  // namespace cosmati::emulator
