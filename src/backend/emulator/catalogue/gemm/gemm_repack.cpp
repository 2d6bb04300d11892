// The emulator's repacking kernels by element size: runs of 4 bytes, or single elements.
#include "cosmati/gemm/repack.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::emulator {
namespace {

template <int element_bytes, int width>
void add(KernelTable& table) {
  add_kernel<&repack_kernel<element_bytes, width, false>, RepackParameters>(
      table, "repack_kernel", plan::RepackTraits{element_bytes, width, false}.print());
  add_kernel<&repack_kernel<element_bytes, width, true>, RepackParameters>(
      table, "repack_kernel", plan::RepackTraits{element_bytes, width, true}.print());
}

}  // namespace

void add_repacking(KernelTable& table) {
  add<1, 1>(table), add<1, 4>(table), add<2, 1>(table), add<2, 2>(table), add<4, 1>(table);
}

}  // namespace cosmati::emulator
