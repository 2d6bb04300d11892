// The emulator's matrix products on tensor cores by mma.sync.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {
namespace {

template <class ElementA, class ElementB, class Sum>
constexpr GemmPolicy policy = emulated_policy(MainLoop::multistage, Multiply::mma,
                                              static_cast<int>(sizeof(ElementA)));

// Operands that are not 8 bits wide may be MN-major or K-major.
template <class Element, class Sum = f32>
CatalogueEntry find_any(Variant const& variant) {
  constexpr int wide = 16 / static_cast<int>(sizeof(Element));
  constexpr GemmPolicy own = policy<Element, Element, Sum>;
  return variant.wide ? entry_of_width<own, Element, Element, Sum, wide>(variant.a, variant.b)
                      : entry_of_width<own, Element, Element, Sum, 1>(variant.a, variant.b);
}

// 8-bit operands must be K-major.
template <class ElementA, class ElementB, class Sum>
CatalogueEntry find_deep(Variant const& variant) {
  constexpr GemmPolicy own = policy<ElementA, ElementB, Sum>;
  return variant.wide
             ? CatalogueEntry{&launch_entry<own, ElementA, ElementB, Sum, Along::depth, Along::depth, 16>}
             : CatalogueEntry{&launch_entry<own, ElementA, ElementB, Sum, Along::depth, Along::depth, 1>};
}

}  // namespace

CatalogueEntry find_mma(DataType a, DataType b, DataType sum, Variant const& variant) {
  if (sum == DataType::f16)
    return entry_of_width<policy<f16, f16, f16>, f16, f16, f16, 1>(variant.a, variant.b);
  switch (a) {
    case DataType::f64: return find_any<f64, f64>(variant);
    case DataType::f16: return find_any<f16>(variant);
    case DataType::bf16: return find_any<bf16>(variant);
    case DataType::s8:
      return b == DataType::s8 ? find_deep<s8, s8, s32>(variant) : find_deep<s8, u8, s32>(variant);
    case DataType::u8:
      return b == DataType::s8 ? find_deep<u8, s8, s32>(variant) : find_deep<u8, u8, s32>(variant);
    case DataType::e4m3:
      return b == DataType::e4m3 ? find_deep<e4m3, e4m3, f32>(variant) : find_deep<e4m3, e5m2, f32>(variant);
    case DataType::e5m2:
      return b == DataType::e4m3 ? find_deep<e5m2, e4m3, f32>(variant) : find_deep<e5m2, e5m2, f32>(variant);
    default: return find_any<tf32>(variant);
  }
}

}  // namespace cosmati::emulator
