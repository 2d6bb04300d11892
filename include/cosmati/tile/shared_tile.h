// A tile of an operand in shared memory: (depth, outer), where depth runs along k and outer along m or n.
#pragma once
#include "cosmati/arch/vector.h"

namespace cosmati {

// Each row holds all outer positions of one depth and is 16 bytes longer than they are. So a step in depth
// moves by four banks, and 8 depths by 4 outer positions, written at once where an operand is transposed on
// its way in, fall into 32 different banks (of 4-byte packs; tests/tile counts the conflicts of all sizes).
template <class Pack_, int depth_, int outer_>
struct SharedTile {
  using Pack = Pack_;  // what the multiply takes at one depth: an element, or four bytes for dp4a
  static constexpr int depth = depth_;
  static constexpr int outer = outer_;
  static constexpr int pitch = outer_ + 16 / static_cast<int>(sizeof(Pack));
  alignas(16) Pack pack[depth_][pitch];  // (depth, outer)
};

// The bytes of a SharedTile, for who has no types.
COSMATI_CONSTEXPR int shared_tile_bytes(int pack_bytes, int depth, int outer) {
  return (depth * (outer * pack_bytes + 16) + 15) / 16 * 16;
}

}  // namespace cosmati
