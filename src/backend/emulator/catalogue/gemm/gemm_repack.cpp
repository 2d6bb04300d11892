// The emulator's repacking kernels by element size: runs of 4 bytes, or single elements.
#include "src/backend/emulator/catalogue/gemm/gemm_repack.h"

#include <algorithm>

#include "cosmati/gemm/repack.h"
#include "src/backend/emulator/catalogue/entries.h"
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

void const* repack(plan::MatrixForm const& operand, RepackRecipe const& recipe, Index outer, Index depth,
                   Index batch, void const* data, std::byte* workspace, int host_threads) {
  if (recipe.bytes == 0) return data;
  program::KernelSpec const kernel = plan::repacking_kernel(operand, recipe, true);
  RepackParameters parameters = plan::repack_parameters(operand, recipe, outer, depth, data, workspace);
  auto const blocks = static_cast<int>(plan::repack_tiles(operand, recipe, outer, depth));
  constexpr Index most_batch = 65535;
  for (Index first = 0; first < batch; first += most_batch) {
    parameters.first_batch = first;
    find_kernel(kernel.key())({blocks, 1, static_cast<int>(std::min(most_batch, batch - first))},
                              static_cast<int>(kernel.threads), kernel.shared_bytes, &parameters,
                              host_threads);
  }
  return parameters.to;
}

}  // namespace cosmati::emulator
