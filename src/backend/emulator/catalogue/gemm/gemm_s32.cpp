// The emulator's matrix products of integers of other types, widened to s32.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

CatalogueEntry find_s32(Variant const& variant) { return find_entry<Multiply::fma, s32, s32, s32>(variant); }

}  // namespace cosmati::emulator
