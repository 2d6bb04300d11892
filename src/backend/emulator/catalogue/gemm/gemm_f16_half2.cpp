// The emulator's matrix products of f16, summed in f16.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

CatalogueEntry find_f16_half2(Variant const& variant) {
  return find_entry<Multiply::half2, f16, f16, f16>(variant);
}

}  // namespace cosmati::emulator
