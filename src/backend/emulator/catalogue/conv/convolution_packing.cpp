// The emulator's packing kernels, by element size.
#include "cosmati/conv/packing.h"

#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/windows/packing.h"

namespace cosmati::emulator {
namespace {

template <class Bits>
void add_bits(KernelTable& table) {
  constexpr int bytes = sizeof(Bits);
  program::KernelSpec const pack = plan::pack_kernel(bytes), unpack = plan::unpack_kernel(bytes);
  if constexpr (bytes < 8)
    add_kernel<&pack_kernel<PackTraits<Bits>>, PackParameters>(table, pack.entry.c_str(), pack.traits);
  add_kernel<&unpack_kernel<Bits>, UnpackParameters>(table, unpack.entry.c_str(), unpack.traits);
}

}  // namespace

void add_packing(KernelTable& table) {
  add_bits<unsigned char>(table), add_bits<unsigned short>(table), add_bits<unsigned>(table);
  add_bits<unsigned long long>(table);
}

}  // namespace cosmati::emulator
