// The emulator's matrix products on tensor cores by mma.sync.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {
namespace {

template <class Element>
constexpr GemmPolicy policy = emulated_policy(MainLoop::multistage, Multiply::mma,
                                              static_cast<int>(sizeof(Element)));

// Operands that are not 8 bits wide may be MN-major or K-major.
template <class Element, class Sum = f32>
void add_any(KernelTable& table) {
  add_widths<policy<Element>, Element, Element, Sum>(table);
}

// 8-bit operands must be K-major.
template <class ElementA, class ElementB, class Sum>
void add_deep(KernelTable& table) {
  constexpr Along depth = Along::k;
  constexpr GemmPolicy own = policy<ElementA>;
  add_gemm<own, StridedSource<ElementA, depth, 1>, StridedSource<ElementB, depth, 1>, Sum>(table);
  add_gemm<own, StridedSource<ElementA, depth, 16>, StridedSource<ElementB, depth, 16>, Sum>(table);
}

}  // namespace

void add_gemm_mma(KernelTable& table) {
  add_directions<policy<f16>, f16, f16, f16, 1>(table);
  add_any<f64, f64>(table), add_any<f16>(table), add_any<bf16>(table), add_any<tf32>(table);
  add_deep<s8, s8, s32>(table), add_deep<s8, u8, s32>(table);
  add_deep<u8, s8, s32>(table), add_deep<u8, u8, s32>(table);
  add_deep<e4m3, e4m3, f32>(table), add_deep<e4m3, e5m2, f32>(table);
  add_deep<e5m2, e4m3, f32>(table), add_deep<e5m2, e5m2, f32>(table);
}

}  // namespace cosmati::emulator
