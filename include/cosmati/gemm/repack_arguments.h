// The parameters of a repacking kernel, and the tile of its blocks.
#pragma once
#include "cosmati/gemm/arguments.h"

namespace cosmati {

// Source: element (row, column) of matrix b is base(b)[row * row_stride + column * column_stride], contiguous
// along columns for vector loads. Destination: the same element is to[b * matrix_pitch + row * pitch +
// column], or if transposed to[b * matrix_pitch + column * pitch + row]; pitch and matrix_pitch are multiples
// of 16 bytes, and padding is zero or not written.
struct RepackParameters {
  MatrixArguments from;
  void* to = nullptr;
  Index rows = 0, columns = 0;
  Index pitch = 0, matrix_pitch = 0;  // elements
  Index first_batch = 0;
};

// Each block copies a tile of `rows` by `columns` elements; thread t of a warp copies word t of each row.
template <int element_bytes, bool transposed>
struct RepackTile {
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int packed = 4 / element_bytes;  // elements of a word
  static constexpr int columns = (transposed ? 32 : 128) * packed;
  static constexpr int rows = transposed ? 32 * packed : 32;
  static constexpr int shared_bytes = (transposed ? columns : 1) * 128;
};

}  // namespace cosmati
