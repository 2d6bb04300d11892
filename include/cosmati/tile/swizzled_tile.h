// A tile of an operand in shared memory as it lies in global memory, for tensor cores: rows of neighbors
// along `along`, cut into chunks of 16 bytes that are exchanged within a row so that eight rows at the same
// chunk fall into different banks.
#pragma once
#include "cosmati/tile/run.h"

namespace cosmati {

// Where chunk `chunk` of row `row` lies among the `chunks` of its row. Rows of 128 bytes or more exchange
// within eight chunks; shorter rows share 128 bytes with their neighbors, and exchange within what they
// have. Elements of 4 bytes whose rows are depths are read four rows by eight columns at a time, two chunks:
// they exchange pairs.
COSMATI_CONSTEXPR int swizzled_chunk(int row, int chunk, int chunks, bool in_pairs) {
  if (in_pairs) return chunk ^ (row % 4 * 2);
  return chunks >= 8 ? chunk ^ (row % 8) : chunks == 4 ? chunk ^ (row / 2 % 4) : chunk ^ (row / 4 % 2);
}

template <class Element_, Along along_, int depth_, int outer_>
struct SwizzledTile {
  using Element = Element_;
  static constexpr Along along = along_;
  static constexpr int depth = depth_, outer = outer_;
  static constexpr int rows = along == Along::depth ? outer : depth;
  static constexpr int row_bytes =
      (along == Along::depth ? depth : outer) * static_cast<int>(sizeof(Element));
  static constexpr int chunks = row_bytes / 16;
  static constexpr bool in_pairs = along == Along::outer && sizeof(Element) == 4;
  static_assert(chunks >= 2 && (chunks & (chunks - 1)) == 0,
                "a row of an operand's tile is a power of two of 16 bytes, and 32 at least");
  static_assert(!in_pairs || chunks >= 8,
                "block_m and block_n are at least 32 where 4-byte elements lie along them");
  alignas(128) unsigned char bytes[rows][row_bytes];

  // The byte at `byte` of row `row` as it lies in global memory.
  COSMATI_CONSTEXPR static int offset(int row, int byte) {
    return row * row_bytes + swizzled_chunk(row, byte / 16, chunks, in_pairs) * 16 + byte % 16;
  }
  COSMATI_CONSTEXPR unsigned char* at(int row, int byte) { return &bytes[0][0] + offset(row, byte); }
  COSMATI_CONSTEXPR unsigned char const* at(int row, int byte) const {
    return &bytes[0][0] + offset(row, byte);
  }
};

}  // namespace cosmati
