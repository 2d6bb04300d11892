// The emulator's matrix products of f32.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

CatalogueEntry find_f32(Variant const& variant) { return find_entry<Multiply::fma, f32, f32, f32>(variant); }

CatalogueEntry find_f32_stream_k(Along a, Along b) {
  constexpr GemmPolicy policy = emulated_policy(MainLoop::multistage, Multiply::fma, 4, Partition::stream_k);
  return entry_of_width<policy, f32, f32, f32, 1>(a, b);
}

}  // namespace cosmati::emulator
