// Launch parameters of the kernels of the algorithm fft.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/core/number.h"

namespace cosmati {

inline constexpr int fft_threads = 256;
inline constexpr int fft_side = 32;  // of a tile: planes, and positions or frequencies
// Positions of a block that reads tensors or writes results, tile by tile; other blocks have one tile.
inline constexpr int fft_positions = 4 * fft_side;

// Dynamic shared memory of a block whose tile has `numbers` real numbers of `real_bytes` for each place.
COSMATI_CONSTEXPR int fft_shared_bytes(int real_bytes, int numbers) {
  constexpr int start_bytes = 24;  // what is known of a plane
  return fft_side * (start_bytes + numbers * (fft_side + 1) * real_bytes);
}

// A chunk of the planes that are transformed, one behind the other in the workspace: number (group * outers +
// outer) * depths + depth, from `first` on. A plane has `rows` rows of `pitch` real numbers, of which
// `columns` exist; transformed in place, of pitch / 2 complex ones, its frequencies.
struct FftChunk {
  void* planes = nullptr;
  int first = 0, count = 0;
  Divisor outers, depths;
  int rows = 1, columns = 1;
  Divisor pitch;
  Divisor tiles;  // of a plane, in the grid

  COSMATI_CONSTEXPR int frequencies() const { return rows * (pitch.divisor / 2); }
  COSMATI_CONSTEXPR Index plane_reals() const { return Index{rows} * pitch.divisor; }
};

// Position j of a plane along one axis holds element i = j / step of a tensor if step divides j and i < most,
// from place origin + i on as far as the tile lies along: 0 if that is not in [0, size).
struct FftAxis {
  Divisor step;
  int most = 0;
  int origin = 0, size = 0;
  Index stride = 0;  // from place to place; in elements, as all strides
};

// `stride` of the digits leads to the tensor's image or channel, `down` and `right` along the places.
struct FftPlanesParameters {
  FftChunk chunk;
  void const* from = nullptr;  // place (0, 0)
  DataType type = DataType::f32;
  DigitSteps outer, depth;
  Index group_stride = 0;
  FftAxis row, column;
};

// Between planes and the matrices of the product. Number `place` of line `line` of frequency f and group g
// lies at data[(f * groups + g) * matrix_pitch + line * pitch + place]; lines are of the planes' outer
// numbers, twice as many of the factor that is doubled; complex numbers of the depths lie along a line.
struct FftMatrixParameters {
  FftChunk chunk;
  void* data = nullptr;
  int groups = 1;
  Index pitch = 0, matrix_pitch = 0;
};

// Where a group has one channel on either side there are no matrices: frequency f of each plane is multiplied
// by the conjugate of number group * frequencies + f of the filters' planes.
struct FftProductParameters {
  FftChunk chunk;
  void const* filter = nullptr;
};

// `stride` of the outer digits leads to the pixel's number, m or n of the result; `down` and `right` are
// outputs. The depth is the number of the other index.
template <class Epilogue, class Destination>
struct FftResultParameters {
  FftChunk chunk;  // tiles: of `outputs`
  double scale = 1;
  DigitSteps outer;
  Divisor tile_columns;  // outputs of a tile in a row,
  int tile_outputs = 1;  // and in all
  int rows = 1, columns = 1;
  int row_step = 1, column_step = 1;  // from output to output, in positions
  int first_pixel = 0, row_number = 0, column_number = 0;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
