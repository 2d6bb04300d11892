// A tile of an operand in shared memory as it lies in global memory, for WMMA, which takes plain lines at one
// distance: lines of neighbors along `along`, each a few bytes longer than its elements, so that what the
// warp touches at a time falls into different banks.
#pragma once
#include "cosmati/tile/run.h"

namespace cosmati {

// The bytes between two lines. What the assembler makes of wmma.load (sm_75 to sm_90), and what is free of
// conflicts then, with lines whose elements fill a multiple of 32 bytes:
// - 16-bit elements, and 8-bit ones along k: ldmatrix, 16 bytes of each of 8 lines at a time. An odd multiple
//   of 16 bytes from line to line puts them into 8 times 4 different banks.
// - 4-byte elements along k: a word from each of 4 neighbors in 8 lines. The same.
// - 4-byte elements along m or n: a word of each of 8 neighbors in 4 lines: an odd multiple of 32 bytes.
// - f64: 8 bytes of each of 4 neighbors in 4 lines, along either: the same.
// - 8-bit elements along m or n: a byte of each of 8 neighbors in every fourth line, four of them. These
//   would want 8 bytes, which neither the instruction nor a copy of 16 bytes takes: two lines share banks,
//   and four bytes make a word in as many loads. The slow way, and the only one without a transposition.
COSMATI_CONSTEXPR int padding_of_line(int element_bytes, Along along) {
  return element_bytes == 8 || (element_bytes == 4 && along == Along::outer) ? 32 : 16;
}

// The bytes of a tile of so many lines, for who has no types.
COSMATI_CONSTEXPR int padded_tile_bytes(int element_bytes, Along along, int depth, int outer) {
  int const lines = along == Along::depth ? outer : depth, elements = along == Along::depth ? depth : outer;
  return (lines * (elements * element_bytes + padding_of_line(element_bytes, along)) + 127) / 128 * 128;
}

// The elements from row to row of sums on their way to D. What wmma.store becomes writes two neighbors of
// eight rows by four columns; eight elements more than a row's keep those apart that are written together.
COSMATI_CONSTEXPR int padded_sums(int columns) { return columns + 8; }

template <class Element_, Along along_, int depth_, int outer_>
struct PaddedTile {
  using Element = Element_;
  static constexpr Along along = along_;
  static constexpr int depth = depth_, outer = outer_;
  static constexpr int size = static_cast<int>(sizeof(Element));
  static constexpr int lines = along == Along::depth ? outer : depth;
  static constexpr int line_bytes = (along == Along::depth ? depth : outer) * size;
  static constexpr int padding = padding_of_line(size, along), pitch = line_bytes + padding;
  static constexpr int stride = pitch / size;  // elements from line to line
  static_assert(line_bytes % 32 == 0,
                "multiply wmma: the elements of a line of an operand's tile fill a multiple of 32 bytes");
  alignas(128) unsigned char bytes[lines][pitch];

  // The element at (outer, depth).
  COSMATI_CONSTEXPR unsigned char const* at(int outer_position, int depth_position) const {
    return along == Along::depth ? &bytes[outer_position][depth_position * size]
                                 : &bytes[depth_position][outer_position * size];
  }
};

// How pieces of `bytes` (up to 16) of a tile are dealt to threads: piece i begins at `byte` of `line`. Eight
// chunks of 16 bytes that are written together fill the banks once: of lines of 128 bytes or more, or piece
// by small piece, they are neighbors; of shorter ones as many lines as the padding keeps apart.
struct PieceShape {
  int bytes, pieces;      // of a chunk
  int chunks;             // of a line
  int group, lines_deep;  // chunks and lines of eight that are written together
  COSMATI_CONSTEXPR int pieces_of_band() const { return pieces * chunks * lines_deep; }
};
struct PiecePlace {
  int line, byte;
};
COSMATI_CONSTEXPR PieceShape piece_shape(int line_bytes, int padding, int bytes) {
  int const chunks = line_bytes / 16;
  if (chunks >= 8 || bytes < 4) return {bytes, 16 / bytes, chunks, chunks, 1};
  return {bytes, 16 / bytes, chunks, padding / 16, 8 / (padding / 16)};
}
COSMATI_CONSTEXPR PiecePlace piece_place(PieceShape shape, int i) {
  int const chunk = i / shape.pieces, of_band = shape.chunks * shape.lines_deep;
  int const in_band = chunk % of_band, together = shape.group * shape.lines_deep;
  int const in_group = in_band % together, first = in_band / together * shape.group;
  return {chunk / of_band * shape.lines_deep + in_group / shape.group,
          (first + in_group % shape.group) * 16 + i % shape.pieces * shape.bytes};
}

}  // namespace cosmati
