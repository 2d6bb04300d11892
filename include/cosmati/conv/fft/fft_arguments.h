// Launch parameters of the kernels of the algorithm fft.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/core/number.h"

namespace cosmati {

inline constexpr int fft_threads = 256;
inline constexpr int fft_side = 32;  // side of a tile: planes, and positions or frequencies
// Positions per block of the kernels that read tensors or write results; other blocks process one tile.
inline constexpr int fft_positions = 4 * fft_side;

// Returns the dynamic shared memory of a block whose tile has `numbers` real numbers of `real_bytes` bytes
// per position.
COSMATI_CONSTEXPR int fft_shared_bytes(int real_bytes, int numbers) {
  constexpr int start_bytes = 24;  // bytes of a plane's start
  return fft_side * (start_bytes + numbers * (fft_side + 1) * real_bytes);
}

// A chunk of the planes that are transformed, consecutive in the workspace: plane number (group * outers +
// outer) * depths + depth, starting at `first`. A plane has `rows` rows of `pitch` real numbers, of which
// `columns` are used; the transform is in place, so a row holds pitch / 2 complex frequencies.
struct FftChunk {
  void* planes = nullptr;
  int first = 0, count = 0;
  Divisor outers, depths;
  int rows = 1, columns = 1;
  Divisor pitch;
  Divisor tiles;  // tiles per plane in the grid

  COSMATI_CONSTEXPR int frequencies() const { return rows * (pitch.divisor / 2); }
  COSMATI_CONSTEXPR Index plane_reals() const { return Index{rows} * pitch.divisor; }
};

// Position j of a plane along one axis holds element i = j / step of a tensor if step divides j and i is less
// than maximum. It is at coordinate origin + i, plus the tile's offset, and is 0 if that is not in [0, size).
struct FftAxis {
  Divisor step;
  int maximum = 0;
  int origin = 0, size = 0;
  Index stride = 0;  // elements between coordinates
};

// `stride` of a digit selects the tensor's image or channel; `down` and `right` are offsets along its rows
// and columns.
struct FftPlanesParameters {
  FftChunk chunk;
  void const* from = nullptr;  // element (0, 0)
  DataType type = DataType::f32;
  IndexStrides outer, depth;
  Index group_stride = 0;
  FftAxis row, column;
};

// Copies between planes and the matrices of the product. Number `place` of line `line` of frequency f and
// group g is at data[(f * groups + g) * matrix_pitch + line * pitch + place]. A line corresponds to one outer
// index of the planes (two lines in the doubled factor) and contains the complex numbers of all depths.
struct FftMatrixParameters {
  FftChunk chunk;
  void* data = nullptr;
  int groups = 1;
  Index pitch = 0, matrix_pitch = 0;
};

// If a group has one channel on either side there are no matrices: frequency f of each plane is multiplied by
// the conjugate of number group * frequencies + f of the filters' planes.
struct FftProductParameters {
  FftChunk chunk;
  void const* filter = nullptr;
};

// `stride` of the outer digits determines the pixel's index, m or n of the result; `down` and `right` are in
// outputs. The depth is the other index.
template <class Epilogue, class Destination>
struct FftResultParameters {
  FftChunk chunk;  // tiles of outputs
  double scale = 1;
  IndexStrides outer;
  Divisor tile_columns;  // outputs per row of a tile
  int tile_outputs = 1;  // outputs per tile
  int rows = 1, columns = 1;
  int row_step = 1, column_step = 1;  // positions between outputs
  int first_pixel = 0, row_number = 0, column_number = 0;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
