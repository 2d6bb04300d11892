// The emulator's kernels that split f32 operands into pieces.
#include "cosmati/gemm/repack.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/gemm/pieces.h"

namespace cosmati::emulator {
namespace {

template <int products, int bytes, bool is_b, int width, bool transposed>
void add(KernelTable& table) {
  constexpr PiecesPolicy policy{
      .products = products, .piece_bytes = bytes, .is_b = is_b, .width = width, .transposed = transposed};
  add_kernel<&pieces_kernel<policy>, PieceParameters>(table, "pieces_kernel",
                                                      plan::PiecesTraits{policy}.print());
}
template <int products, int bytes, bool is_b>
void add_accesses(KernelTable& table) {
  add<products, bytes, is_b, 1, false>(table), add<products, bytes, is_b, 4, false>(table);
  add<products, bytes, is_b, 1, true>(table), add<products, bytes, is_b, 4, true>(table);
}
template <int products, int bytes>
void add_operands(KernelTable& table) {
  add_accesses<products, bytes, false>(table), add_accesses<products, bytes, true>(table);
}

}  // namespace

void add_gemm_pieces(KernelTable& table) {
  add_operands<3, 2>(table), add_operands<6, 2>(table), add_operands<9, 2>(table);
  add_operands<3, 4>(table);
}

}  // namespace cosmati::emulator
