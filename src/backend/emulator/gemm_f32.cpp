// The emulator's matrix products of f32.
#include "src/backend/emulator/gemm_catalogue.h"

namespace cosmati::emulator {

CatalogueEntry find_f32(Variant const& variant) { return find_entry<Multiply::fma, f32, f32, f32>(variant); }

}  // namespace cosmati::emulator
