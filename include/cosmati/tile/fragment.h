// Loads from shared memory to registers: the packs that a thread multiplies at one depth.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/tile/partition.h"
#include "cosmati/tile/shared_tile.h"

namespace cosmati {

// The layout of a thread's positions of one operand in a row of its tile: runs of at most 16 bytes.
template <class Pack>
COSMATI_CONSTEXPR LinePartition operand_partition(int warp_tile, int lanes, int extent) {
  return {warp_tile, lanes, extent, vector_within(extent, 16 / static_cast<int>(sizeof(Pack)))};
}

// Reads the packs of row `depth` at the positions of (warp, lane) in `partition`.
template <int warp_tile, int lanes, int extent, class Tile>
COSMATI_DEVICE void read_fragment(typename Tile::Pack (&to)[extent], Tile const& tile, int depth, int warp,
                                  int lane) {
  using Pack = typename Tile::Pack;
  constexpr LinePartition partition = operand_partition<Pack>(warp_tile, lanes, extent);
  COSMATI_UNROLL
  for (int i = 0; i < extent; i += partition.vector) {
    auto const run =
        arch::load<Vector<Pack, partition.vector>>(&tile.pack[depth][partition.position(warp, lane, i)]);
    COSMATI_UNROLL
    for (int e = 0; e < partition.vector; ++e) to[i + e] = run[e];
  }
}

}  // namespace cosmati
