// A tile of an operand in shared memory in the layout of global memory, for WMMA, which requires plain lines
// at a constant stride: lines are contiguous along `along`, and each is padded by a few bytes, so that
// simultaneous accesses of a warp are to different banks.
#pragma once
#include "cosmati/tile/run.h"

namespace cosmati {

// Returns the bytes of padding per line. It follows from the code that the assembler generates for wmma.load
// (sm_75 to sm_90), with lines whose elements fill a multiple of 32 bytes:
// - 16-bit elements, and 8-bit elements if K-major: ldmatrix, 16 bytes of each of 8 lines at a time. If the
// distance of lines is an odd multiple of 16 bytes, they are in 8 times 4 different banks.
// - 4-byte elements, K-major: a word from each of 4 adjacent elements in 8 lines. The same.
// - 4-byte elements, MN-major: a word of each of 8 adjacent elements in 4 lines: an odd multiple of 32 bytes.
// - f64: 8 bytes of each of 4 adjacent elements in 4 lines, in either direction: the same.
// - 8-bit elements, MN-major: a byte of each of 8 adjacent elements in every fourth line, four of them. This
// would require 8 bytes, which neither the instruction nor a 16-byte copy supports: two lines share banks,
// and a word takes four one-byte loads. It is slow, but the only way without a transposition.
COSMATI_CONSTEXPR int padding_of_line(int element_bytes, Along along) {
  return element_bytes == 8 || (element_bytes == 4 && along == Along::mn) ? 32 : 16;
}

// Returns the bytes of a tile of this size; for code without the types.
COSMATI_CONSTEXPR int padded_tile_bytes(int element_bytes, Along along, int depth, int outer) {
  int const lines = along == Along::k ? outer : depth, elements = along == Along::k ? depth : outer;
  return (lines * (elements * element_bytes + padding_of_line(element_bytes, along)) + 127) / 128 * 128;
}

// Returns the elements between rows of sums that are staged for D. wmma.store writes two adjacent elements of
// eight rows by four columns at a time; eight elements of padding keep them in different banks.
COSMATI_CONSTEXPR int padded_sums(int columns) { return columns + 8; }

template <class Element_, Along along_, int depth_, int outer_>
struct PaddedTile {
  using Element = Element_;
  static constexpr Along along = along_;
  static constexpr int depth = depth_, outer = outer_;
  static constexpr int size = static_cast<int>(sizeof(Element));
  static constexpr int lines = along == Along::k ? outer : depth;
  static constexpr int line_bytes = (along == Along::k ? depth : outer) * size;
  static constexpr int padding = padding_of_line(size, along), pitch = line_bytes + padding;
  static constexpr int stride = pitch / size;  // elements between lines
  static_assert(line_bytes % 32 == 0,
                "multiply wmma: the elements of a line of an operand's tile must fill a multiple of 32 "
                "bytes");
  alignas(128) unsigned char bytes[lines][pitch];

  // Returns the address of the element at (outer, depth).
  COSMATI_CONSTEXPR unsigned char const* at(int outer_position, int depth_position) const {
    return along == Along::k ? &bytes[outer_position][depth_position * size]
                             : &bytes[depth_position][outer_position * size];
  }
};

// How pieces of `bytes` (up to 16) of a tile are assigned to threads: piece i begins at `byte` of `line`.
// Eight 16-byte chunks that are written together cover the banks once: in lines of 128 bytes or more, or if
// pieces are small, the chunks are adjacent; in shorter lines they are in as many lines as the padding
// separates.
struct PieceShape {
  int bytes, pieces;      // pieces per chunk, and their bytes
  int chunks;             // per line
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
