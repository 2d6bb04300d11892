// How the tensor copy engine (TMA) moves tiles: what the host encodes in tensor maps, and what the kernels'
// tiles are made of.
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

// How a tile of (depth, outer) is cut into boxes. It may be brought in `slices` by as many blocks of a
// cluster.
struct TensorBox {
  int row;          // neighbors in a box: at most 128 bytes
  int rows;         // of a box in shared memory
  int boxes;        // of the tile, one behind the other
  bool by_boxes;    // slices are boxes, else rows of each box
  int slice_rows;   // rows that one copy brings
  int slice_boxes;  // copies of a slice
};

COSMATI_CONSTEXPR TensorBox tensor_box(Along along, int element_bytes, int depth, int outer, int slices) {
  int const line = along == Along::depth ? depth : outer, rows = along == Along::depth ? outer : depth;
  int row_bytes = 128;
  while (row_bytes > 16 && line * element_bytes % row_bytes != 0) row_bytes /= 2;
  int const row = row_bytes / element_bytes, boxes = line / row;
  bool const by_boxes = boxes % slices == 0;
  return {row, rows, boxes, by_boxes, by_boxes ? rows : rows / slices, by_boxes ? boxes / slices : boxes};
}

// How D goes the other way: a warp's part by boxes of 16 rows and at most 128 bytes, each of which waits in a
// buffer until the engine has read it.
struct TensorStore {
  int columns;  // of a box
  int boxes_n;  // across a warp's columns
  int boxes;    // of a warp
  int buffers;  // of a warp: as many of its boxes as fit behind the stages, since each round of them costs a
                // fence and a wait for the engine
  int bytes;    // of all buffers
};
inline constexpr int tensor_store_rows = 16;

// The widest part of a row of `warp_n` elements that divides it and has at most 128 bytes: a power of two, so
// that it is a row of a swizzle.
COSMATI_CONSTEXPR int part_of_row(int warp_n, int element_bytes) {
  int part = 128 / element_bytes;
  while (warp_n % part != 0) part /= 2;
  return part;
}

COSMATI_CONSTEXPR TensorStore tensor_store(int warp_m, int warp_n, int warps, int element_bytes,
                                           int stage_bytes, int blocks) {
  int const block_bytes = 228 * 1024 / blocks - 2048;  // of shared memory, less the system's and barriers
  int const columns = part_of_row(warp_n, element_bytes);
  int const boxes_n = warp_n / columns, boxes = warp_m / tensor_store_rows * boxes_n;
  int const box_bytes = warps * tensor_store_rows * columns * element_bytes;
  int buffers = boxes;
  while (buffers > 1 && (boxes % buffers != 0 || stage_bytes + buffers * box_bytes > block_bytes)) --buffers;
  return {columns, boxes_n, boxes, buffers, buffers * box_bytes};
}

// Where element (row, column) of a box lies in its buffer, in bytes.
COSMATI_CONSTEXPR int tensor_store_offset(int row, int column, int columns, int element_bytes) {
  int const row_bytes = columns * element_bytes, offset = row * row_bytes + column * element_bytes;
  return static_cast<int>(swizzled(static_cast<unsigned>(offset), swizzle_of(row_bytes)));
}

}  // namespace cosmati
