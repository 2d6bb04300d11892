// Reads A of wgmma into registers, for M-major 4-byte elements: from shared memory as written by TMA
// (tile/tensor_tile.h) to four registers per thread for 64 rows and 32 bytes of depth (arch/warpgroup.h).
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/tile/tensor_tile.h"

namespace cosmati {

// Register r of lane 4 g + t holds row g + 8 (r % 2) at depth t + 4 (r / 2). Rows of the tile are depths: 128
// bytes, whose 16-byte chunks, of four rows of A each, are permuted by depth % 8. If all lanes loaded
// register r at once, the two chunks of rows g and the four depths t would be in four of the eight chunk
// positions, with two lanes per bank. Therefore load i of lanes 16 and higher loads what the other lanes load
// by load i ^ 2, so that each half-warp uses the banks that the other does not; a swap then restores the
// order of the registers.
struct OuterPlace {
  int outer, depth;
};
COSMATI_CONSTEXPR OuterPlace outer_place(int lane, int load) {
  return {lane / 4 + load % 2 * 8, lane % 4 + (load / 2 ^ lane / 16) * 4};
}

template <class Tile>
class OuterFragmentReader {
  static_assert(Tile::along == Along::mn && Tile::element_bytes == 4 && Tile::row_bytes == 128,
                "an operand passed through registers must be M-major, with rows of 32 4-byte elements in "
                "its tile");

 public:
  // Returns the offset in the tile of a lane's load; the rows are those starting at `first_outer`.
  COSMATI_CONSTEXPR static int offset(int first_outer, int lane, int load) {
    OuterPlace const place = outer_place(lane, load);
    return tile_offset(place.depth, (first_outer + place.outer) * 4, Tile::box.rows, Tile::swizzle);
  }

  // Reads for the calling warp, whose 16 rows begin at `first_outer`.
  COSMATI_DEVICE OuterFragmentReader(Tile const& tile, int first_outer)
      : bytes_(&tile.bytes[0][0][0]), is_swapped_(arch::thread() % 32 >= 16) {
    COSMATI_UNROLL
    for (int load = 0; load < 4; ++load) offset_[load] = offset(first_outer, arch::thread() % 32, load);
  }

  // Reads the 32 bytes of depth number `pack` of tile `stage` of an array; the rows start at 64 * block.
  COSMATI_DEVICE void read(unsigned (&to)[4], int stage, int pack, int block) const {
    constexpr int pack_bytes = 8 * Tile::row_bytes, block_bytes = 64 / Tile::box.row * Tile::box_bytes;
    unsigned char const* const from = bytes_ + stage * static_cast<int>(sizeof(Tile));
    unsigned value[4];
    COSMATI_UNROLL
    for (int load = 0; load < 4; ++load)
      value[load] = arch::load<unsigned>(from + offset_[load] + pack * pack_bytes + block * block_bytes);
    COSMATI_UNROLL
    for (int r = 0; r < 4; ++r) to[r] = is_swapped_ ? value[r ^ 2] : value[r];
  }

 private:
  unsigned char const* bytes_;
  bool is_swapped_;
  int offset_[4];
};

}  // namespace cosmati
