// The emulator's matrix products by WMMA: with single-element loads for any layout; for f16 also with
// full-width copies.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {
namespace {

template <MainLoop main_loop, class Element, class Sum, int width = 1>
CatalogueEntry find_through(Variant const& variant) {
  constexpr GemmPolicy policy = emulated_policy(main_loop, Multiply::wmma, static_cast<int>(sizeof(Element)));
  return entry_of_width<policy, Element, Element, Sum, width>(variant.a, variant.b);
}

template <class Element, class Sum>
CatalogueEntry find_both(Variant const& variant) {
  return variant.main_loop == MainLoop::multistage
             ? find_through<MainLoop::multistage, Element, Sum>(variant)
             : find_through<MainLoop::double_buffered, Element, Sum>(variant);
}

}  // namespace

CatalogueEntry find_wmma(DataType type, DataType sum, Variant const& variant) {
  switch (type) {
    case DataType::f64: return find_both<f64, f64>(variant);
    case DataType::bf16: return find_both<bf16, f32>(variant);
    case DataType::s8: return find_both<s8, s32>(variant);
    case DataType::u8: return find_both<u8, s32>(variant);
    case DataType::tf32: return find_both<tf32, f32>(variant);
    default: break;
  }
  if (sum == DataType::f16) return find_both<f16, f16>(variant);
  if (variant.wide && variant.main_loop == MainLoop::multistage)
    return find_through<MainLoop::multistage, f16, f32, 8>(variant);
  return find_both<f16, f32>(variant);
}

}  // namespace cosmati::emulator
