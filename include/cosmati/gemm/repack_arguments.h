// The parameters of the kernels that repack operands and split f32 operands into pieces, and the tiles of
// their blocks.
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

// Each block copies a tile of rows() by columns() elements; thread t of a warp copies word t of each row.
struct RepackPolicy {
  static constexpr int threads = 256, warps = threads / 32;
  int element_bytes = 4;
  int width = 1;  // elements of a run; the address of a run is a multiple of its size
  bool transposed = false;

  COSMATI_CONSTEXPR int packed() const { return 4 / element_bytes; }  // elements of a word
  COSMATI_CONSTEXPR int columns() const { return (transposed ? 32 : 128) * packed(); }
  COSMATI_CONSTEXPR int rows() const { return transposed ? 32 * packed() : 32; }
  COSMATI_CONSTEXPR int shared_bytes() const { return (transposed ? columns() : 1) * 128; }
};

// The pieces of a factor x: x = p0 + p1 + p2, each the bf16 nearest to the remainder, or x = p0 + p1 with
// tf32, to within its last bit. `finite` is p0, or 0 if x is infinite or NaN. Only the product of both p0
// uses p0; the others use `finite`, since infinity times a remainder of 0 would be NaN.
enum class Piece : unsigned char { p0, p1, p2, finite };

// The pieces of a and b in product `index` of 3, 6 or 9, from the smallest product to the largest.
struct PiecePair {
  Piece a, b;
};
COSMATI_CONSTEXPR PiecePair piece_pair(int products, int index) {
  constexpr PiecePair pairs[9] = {
      {Piece::p2, Piece::p2},     {Piece::p2, Piece::p1},     {Piece::p1, Piece::p2},
      {Piece::p2, Piece::finite}, {Piece::p1, Piece::p1},     {Piece::finite, Piece::p2},
      {Piece::p1, Piece::finite}, {Piece::finite, Piece::p1}, {Piece::p0, Piece::p0}};
  return pairs[9 - products + index];
}

// Source: element (outer, depth) of f32 matrix i is base(from, i)[outer * row_stride + depth *
// column_stride]. Destination: piece `s` of row `outer` is to[i * matrix_pitch + outer * pitch + s * segment
// + depth], for each of the products; elements from `depth` to `segment` are 0.
struct PieceParameters {
  MatrixArguments from;
  void* to = nullptr;
  Index outer = 0, depth = 0;
  Index segment = 0, pitch = 0, matrix_pitch = 0;  // pieces, multiples of 8
  Index first_batch = 0;
};

struct PiecesPolicy {
  int products = 6;
  int piece_bytes = 2;      // 2: bf16; 4: tf32, of which there are 3 products
  bool is_b = false;        // the pieces of the second factor
  int width = 1;            // contiguous elements of the source that are loaded together, 1 or 4
  bool transposed = false;  // the source is contiguous along the outer index
};

// Each block splits a tile; a thread writes runs of eight pieces.
struct PieceTile {
  static constexpr int threads = 256, outer = 32, depth = 64, run = 8;
  static constexpr int shared_bytes = depth * (outer + 1) * 4;
};

}  // namespace cosmati
