// The parameters of a repacking kernel, and the tile of its blocks.
#pragma once
#include "cosmati/gemm/arguments.h"

namespace cosmati {

// From: element (row, column) of matrix b at base(b)[row * row_stride + column * column_stride], neighbors
// along columns. To: the same element at to[b * matrix_pitch + row * pitch + column], transposed at
// [... + column * pitch + row]; pitch and matrix_pitch are multiples of 16 bytes, what lies between is zero
// or not written.
struct RepackParameters {
  MatrixArguments from;
  void* to = nullptr;
  Index rows = 0, columns = 0;
  Index pitch = 0, matrix_pitch = 0;  // elements
  Index first_batch = 0;
};

// A block has a tile of `rows` by `columns` elements; thread t of a warp has word t of each row.
template <int element_bytes, bool transposed>
struct RepackTile {
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int packed = 4 / element_bytes;  // elements of a word
  static constexpr int columns = (transposed ? 32 : 128) * packed;
  static constexpr int rows = transposed ? 32 * packed : 32;
  static constexpr int shared_bytes = (transposed ? columns : 1) * 128;
};

}  // namespace cosmati
