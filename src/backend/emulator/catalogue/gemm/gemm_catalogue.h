// The emulator's kernels: for each family and type, the runs of A and B along m / n or k, as wide as 16 bytes
// or single elements.
#pragma once
#include "src/backend/emulator/catalogue/gemm/gemm_host.h"
#include "src/plan/emulated/policy.h"

namespace cosmati::emulator {

struct CatalogueEntry {
  void (*launch)(Grid grid, HostGemmParameters const& parameters, int host_threads) = nullptr;
};

// Which of a type's kernels.
struct Variant {
  MainLoop main_loop;
  Along a, b;
  bool wide;
};

CatalogueEntry find_f32(Variant const& variant);
CatalogueEntry find_f32_stream_k(Along a, Along b);  // by cp.async, single elements
CatalogueEntry find_f64(Variant const& variant);
CatalogueEntry find_f16(Variant const& variant);                            // sums in f32
CatalogueEntry find_f16_half2(Variant const& variant);                      // sums in f16
CatalogueEntry find_bytes(DataType a, DataType b, Variant const& variant);  // s8 and u8
CatalogueEntry find_s32(Variant const& variant);
CatalogueEntry find_mma(DataType a, DataType b, DataType sum, Variant const& variant);  // what mma_takes()
CatalogueEntry find_wmma(DataType type, DataType sum, Variant const& variant);          // what wmma_takes()

template <GemmPolicy policy, class ElementA, class ElementB, class Sum, Along a, Along b, int width>
void launch_entry(Grid grid, HostGemmParameters const& parameters, int host_threads) {
  using Traits = GemmTraits<policy, StridedSource<ElementA, a, width>, StridedSource<ElementB, b, width>, Sum,
                            HostEpilogue, HostDestination>;
  launch_kernel<&gemm_kernel<Traits>>(grid, Traits::threads, sizeof(typename Traits::SharedStorage),
                                      parameters, host_threads);
}

template <GemmPolicy policy, class ElementA, class ElementB, class Sum, int width>
CatalogueEntry entry_of_width(Along a, Along b) {
  constexpr Along outer = Along::outer, depth = Along::depth;
  if (a == outer)
    return b == outer ? CatalogueEntry{&launch_entry<policy, ElementA, ElementB, Sum, outer, outer, width>}
                      : CatalogueEntry{&launch_entry<policy, ElementA, ElementB, Sum, outer, depth, width>};
  return b == outer ? CatalogueEntry{&launch_entry<policy, ElementA, ElementB, Sum, depth, outer, width>}
                    : CatalogueEntry{&launch_entry<policy, ElementA, ElementB, Sum, depth, depth, width>};
}

template <Multiply multiply, class ElementA, class ElementB, class Sum>
CatalogueEntry find_entry(Variant const& variant) {
  constexpr GemmPolicy buffered = emulated_policy(MainLoop::double_buffered, multiply);
  constexpr GemmPolicy staged = emulated_policy(MainLoop::multistage, multiply);
  constexpr int wide = 16 / static_cast<int>(sizeof(ElementA));
  if (variant.main_loop == MainLoop::multistage)
    return variant.wide ? entry_of_width<staged, ElementA, ElementB, Sum, wide>(variant.a, variant.b)
                        : entry_of_width<staged, ElementA, ElementB, Sum, 1>(variant.a, variant.b);
  return variant.wide ? entry_of_width<buffered, ElementA, ElementB, Sum, wide>(variant.a, variant.b)
                      : entry_of_width<buffered, ElementA, ElementB, Sum, 1>(variant.a, variant.b);
}

}  // namespace cosmati::emulator
