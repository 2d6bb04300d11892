// The emulator's unrolling kernels, by element size and direction: with single elements or, for 4-byte
// elements along k, runs of 16 bytes.
#include "cosmati/conv/unroll.h"

#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/unroll.h"

namespace cosmati::emulator {
namespace {

template <class Bits, Along along, int width>
void add(KernelTable& table) {
  using Source = WindowSource<Bits, along, width, DepthDigits::each, true>;
  add_kernel<&unroll_kernel<Source>, UnrollParameters>(
      table, "unroll_kernel", plan::UnrollTraits{static_cast<int>(sizeof(Bits)), along, width}.print());
}
template <class Bits>
void add_single(KernelTable& table) {
  add<Bits, Along::k, 1>(table), add<Bits, Along::mn, 1>(table);
}

}  // namespace

void add_unrolling(KernelTable& table) {
  add_single<unsigned char>(table), add_single<unsigned short>(table);
  add_single<unsigned>(table), add_single<unsigned long long>(table);
  add<unsigned, Along::k, 4>(table);
}

}  // namespace cosmati::emulator
