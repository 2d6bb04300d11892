// The emulator's matrix products of f16, summed in f32.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

CatalogueEntry find_f16(Variant const& variant) { return find_entry<Multiply::fma, f16, f16, f32>(variant); }

}  // namespace cosmati::emulator
