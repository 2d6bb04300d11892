// The emulator's matrix products of f64.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

CatalogueEntry find_f64(Variant const& variant) { return find_entry<Multiply::fma, f64, f64, f64>(variant); }

}  // namespace cosmati::emulator
