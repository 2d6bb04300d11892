// A tile of an operand in shared memory: (depth, outer), where depth is along k and outer along m or n.
#pragma once
#include "cosmati/arch/vector.h"

namespace cosmati {

// Each row contains all outer positions of one depth and is padded by 16 bytes, so a step in depth moves by
// four banks, and 8 depths by 4 outer positions, which are written together if an operand is transposed on
// load, are in 32 different banks (for 4-byte packs; tests/tile counts the conflicts for all sizes).
template <class Pack_, int depth_, int outer_>
struct SharedTile {
  using Pack = Pack_;  // operand of the multiply at one depth: an element, or four bytes for dp4a
  static constexpr int depth = depth_;
  static constexpr int outer = outer_;
  static constexpr int pitch = outer_ + 16 / static_cast<int>(sizeof(Pack));
  alignas(16) Pack pack[depth_][pitch];  // (depth, outer)
};

// Returns the bytes of a SharedTile; for code without the types.
COSMATI_CONSTEXPR int shared_tile_bytes(int pack_bytes, int depth, int outer) {
  return (depth * (outer * pack_bytes + 16) + 15) / 16 * 16;
}

}  // namespace cosmati
