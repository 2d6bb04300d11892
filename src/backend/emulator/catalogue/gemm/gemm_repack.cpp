// The emulator's repacking kernels by element size: runs of 4 bytes, or single elements; rows that remain
// rows.
#include "cosmati/gemm/repack.h"

#include "cosmati/gemm/operands/row_copy.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::emulator {
namespace {

template <RepackPolicy policy>
void add_policy(KernelTable& table) {
  add_kernel<&repack_kernel<policy>, RepackParameters>(table, "repack_kernel",
                                                       plan::RepackTraits{policy}.print());
}
template <int element_bytes, int width>
void add(KernelTable& table) {
  add_policy<RepackPolicy{.element_bytes = element_bytes, .width = width, .transposed = false}>(table);
  add_policy<RepackPolicy{.element_bytes = element_bytes, .width = width, .transposed = true}>(table);
}

template <class Element>
void add_rows(KernelTable& table) {
  add_kernel<&row_copy_kernel<RowCopyTraits<Element>>, RepackParameters>(
      table, "row_copy_kernel", plan::row_copy_traits(static_cast<int>(sizeof(Element))));
}

}  // namespace

void add_repacking(KernelTable& table) {
  add<1, 1>(table), add<1, 4>(table), add<2, 1>(table), add<2, 2>(table), add<4, 1>(table);
  add_rows<unsigned char>(table), add_rows<unsigned short>(table);
}

}  // namespace cosmati::emulator
