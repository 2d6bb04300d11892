// How TMA moves tiles: the contents of tensor maps that the host encodes, and the structure of the kernels'
// tiles.
#pragma once
#include "cosmati/tile/matrix_descriptor.h"
#include "cosmati/tile/run.h"

namespace cosmati {

COSMATI_CONSTEXPR Swizzle swizzle_of(int row_bytes) {
  return row_bytes == 128  ? Swizzle::bytes128
         : row_bytes == 64 ? Swizzle::bytes64
         : row_bytes == 32 ? Swizzle::bytes32
                           : Swizzle::none;
}

// How a tile of (depth, outer) is divided into boxes. `slices` blocks of a cluster may each load one slice of
// it. Along mn, the last box may end beyond the tile: full rows take TMA less time than short ones.
struct TensorBox {
  int row;          // contiguous elements of a box: at most 128 bytes
  int rows;         // rows of a box in shared memory
  int boxes;        // boxes of the tile, consecutive
  bool by_boxes;    // slices are boxes, otherwise rows of each box
  int slice_rows;   // rows per copy
  int slice_boxes;  // copies per slice
};

COSMATI_CONSTEXPR TensorBox tensor_box(Along along, int element_bytes, int depth, int outer, int slices) {
  int const line = along == Along::k ? depth : outer, rows = along == Along::k ? outer : depth;
  int const line_bytes = line * element_bytes;
  int row_bytes = 128;
  bool const ends_beyond = along == Along::mn && line_bytes % 64 != 0;
  while (row_bytes > 16 && (ends_beyond ? line_bytes <= row_bytes / 2 : line_bytes % row_bytes != 0))
    row_bytes /= 2;
  int const row = row_bytes / element_bytes, boxes = (line + row - 1) / row;
  bool const by_boxes = boxes % slices == 0;
  return {row, rows, boxes, by_boxes, by_boxes ? rows : rows / slices, by_boxes ? boxes / slices : boxes};
}

// The bytes of a tile in shared memory.
COSMATI_CONSTEXPR int bytes_of_boxes(TensorBox const& box, int element_bytes) {
  return box.boxes * box.rows * box.row * element_bytes;
}

// Returns the lines per copy of an operand with `outer` rows. A K-major box that is as tall as the tile ends
// with the operand, because TMA is slow to fill missing rows with zeros; they stay unwritten.
COSMATI_CONSTEXPR int lines_of_copy(TensorBox const& box, Along along, long long outer) {
  bool const ends = along == Along::k && box.slice_rows == box.rows && outer < box.rows;
  return ends ? static_cast<int>(outer) : box.slice_rows;
}

// How TMA stores D: a warp's part in boxes of 16 rows, each of which stays in a buffer until TMA has read it.
struct TensorStore {
  int columns;  // columns of a box
  int boxes_n;  // boxes across a warp's columns
  int boxes;    // boxes of a warp
  // Buffers per warp: as many of its boxes as fit in shared memory in addition to the stages, since each
  // reuse of a buffer costs a fence and a wait for TMA.
  int buffers;
  int bytes;  // bytes of all buffers
};
inline constexpr int tensor_store_rows = 16;

// Returns the largest part of at most 128 bytes that divides a row of `warp_n` elements: a power of two, so
// that it is a row of a swizzle.
COSMATI_CONSTEXPR int part_of_row(int warp_n, int element_bytes) {
  int part = 128 / element_bytes;
  while (warp_n % part != 0) part /= 2;
  return part;
}

// Returns the columns of a box of D: rows of 32, 64 or 128 bytes, which are swizzled, or an odd number of
// 16-byte units, which lie in different banks without a swizzle.
COSMATI_CONSTEXPR int columns_of_store(int warp_n, int element_bytes) {
  int const part = part_of_row(warp_n, element_bytes);
  if (part == warp_n || part * element_bytes >= 64 || warp_n * element_bytes % 16 != 0) return part;
  int columns = warp_n;
  while (columns % 16 == 0 && columns * element_bytes % 32 == 0) columns /= 2;
  return columns;
}

COSMATI_CONSTEXPR TensorStore tensor_store(int warp_m, int warp_n, int warps, int element_bytes,
                                           int stage_bytes, int blocks) {
  int const block_bytes = 228 * 1024 / blocks - 2048;  // shared memory minus the system's part and the
                                                       // barriers
  int const columns = columns_of_store(warp_n, element_bytes);
  int const boxes_n = warp_n / columns, boxes = warp_m / tensor_store_rows * boxes_n;
  int const box_bytes = warps * tensor_store_rows * columns * element_bytes;
  int buffers = boxes;
  while (buffers > 1 && (boxes % buffers != 0 || stage_bytes + buffers * box_bytes > block_bytes)) --buffers;
  return {columns, boxes_n, boxes, buffers, buffers * box_bytes};
}

// Returns the byte offset of element (row, column) of a box in its buffer.
COSMATI_CONSTEXPR int tensor_store_offset(int row, int column, int columns, int element_bytes) {
  int const row_bytes = columns * element_bytes, offset = row * row_bytes + column * element_bytes;
  return static_cast<int>(swizzled(static_cast<unsigned>(offset), swizzle_of(row_bytes)));
}

}  // namespace cosmati
