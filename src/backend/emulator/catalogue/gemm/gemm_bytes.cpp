// The emulator's matrix products of 8-bit integers, signed and unsigned.
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

CatalogueEntry find_bytes(DataType a, DataType b, Variant const& variant) {
  if (a == DataType::s8)
    return b == DataType::s8 ? find_entry<Multiply::dp4a, s8, s8, s32>(variant)
                             : find_entry<Multiply::dp4a, s8, u8, s32>(variant);
  return b == DataType::s8 ? find_entry<Multiply::dp4a, u8, s8, s32>(variant)
                           : find_entry<Multiply::dp4a, u8, u8, s32>(variant);
}

}  // namespace cosmati::emulator
