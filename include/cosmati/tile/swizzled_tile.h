// A tile of an operand in shared memory for tensor cores: rows are contiguous along `along`, and their
// 16-byte chunks are permuted so that eight rows at the same chunk are in different banks.
#pragma once
#include "cosmati/tile/run.h"

namespace cosmati {

// Returns the position of chunk `chunk` of row `row` among the `chunks` of its row. Rows of 128 bytes or more
// are permuted within eight chunks; shorter rows share 128 bytes with adjacent rows, and are permuted within
// their own chunks.
COSMATI_CONSTEXPR int swizzled_chunk(int row, int chunk, int chunks) {
  return chunks >= 8 ? chunk ^ (row % 8) : chunks == 4 ? chunk ^ (row / 2 % 4) : chunk ^ (row / 4 % 2);
}

template <class Element_, Along along_, int depth_, int outer_>
struct SwizzledTile {
  using Element = Element_;
  static constexpr Along along = along_;
  static constexpr int depth = depth_, outer = outer_;
  static constexpr int rows = along == Along::k ? outer : depth;
  static constexpr int row_bytes = (along == Along::k ? depth : outer) * static_cast<int>(sizeof(Element));
  static constexpr int chunks = row_bytes / 16;
  static_assert(chunks >= 2 && (chunks & (chunks - 1)) == 0,
                "a row of an operand's tile must have a power of two of at least 32 bytes");
  alignas(128) unsigned char bytes[rows][row_bytes];

  // The offset of byte `byte` of row `row` of the unpermuted tile.
  COSMATI_CONSTEXPR static int offset(int row, int byte) {
    return row * row_bytes + swizzled_chunk(row, byte / 16, chunks) * 16 + byte % 16;
  }
  COSMATI_CONSTEXPR unsigned char* at(int row, int byte) { return &bytes[0][0] + offset(row, byte); }
  COSMATI_CONSTEXPR unsigned char const* at(int row, int byte) const {
    return &bytes[0][0] + offset(row, byte);
  }
};

}  // namespace cosmati
