// Repacking kernels by element size: runs of a word or more, or single elements.
#include "src/backend/emulator/catalogue/gemm/gemm_repack.h"

#include <algorithm>

#include "cosmati/gemm/repack.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::emulator {
namespace {

template <int element_bytes, int width, bool transposed>
void launch_repack(RepackParameters parameters, Index batch, int host_threads) {
  using Tile = RepackTile<element_bytes, transposed>;
  using Shared = typename Repack<element_bytes, width, transposed>::SharedStorage;
  auto const tiles = [](Index extent, int tile) { return (extent + tile - 1) / tile; };
  auto const blocks =
      static_cast<int>(tiles(parameters.rows, Tile::rows) * tiles(parameters.columns, Tile::columns));
  constexpr Index most_batch = 65535;
  for (Index first = 0; first < batch; first += most_batch) {
    parameters.first_batch = first;
    launch_kernel<&repack_kernel<element_bytes, width, transposed>>(
        {blocks, 1, static_cast<int>(std::min(most_batch, batch - first))}, Tile::threads, sizeof(Shared),
        parameters, host_threads);
  }
}

template <int element_bytes>
void repack_elements(RepackRecipe const& recipe, RepackParameters const& parameters, Index batch,
                     int host_threads) {
  constexpr int word = 4 / element_bytes;
  bool const transposed = recipe.from != recipe.to, single = recipe.width < word || recipe.width == 1;
  auto* const launch =
      single ? (transposed ? &launch_repack<element_bytes, 1, true> : &launch_repack<element_bytes, 1, false>)
             : (transposed ? &launch_repack<element_bytes, word, true>
                           : &launch_repack<element_bytes, word, false>);
  launch(parameters, batch, host_threads);
}

}  // namespace

void const* repack(plan::MatrixForm const& operand, RepackRecipe const& recipe, Index outer, Index depth,
                   Index batch, void const* data, std::byte* workspace, int host_threads) {
  if (recipe.bytes == 0) return data;
  RepackParameters const parameters = plan::repack_parameters(operand, recipe, outer, depth, data, workspace);
  switch (size_of(operand.type)) {
    case 1: repack_elements<1>(recipe, parameters, batch, host_threads); break;
    case 2: repack_elements<2>(recipe, parameters, batch, host_threads); break;
    default: repack_elements<4>(recipe, parameters, batch, host_threads); break;
  }
  return parameters.to;
}

}  // namespace cosmati::emulator
