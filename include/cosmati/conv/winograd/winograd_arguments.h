// Launch parameters of the kernels of the algorithm winograd.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/core/number.h"

namespace cosmati {

// A batch of matrices in the workspace, one for each position (i, j) in a tile, number i * size + j: element
// (line, place) of a matrix is at data[position * matrix_pitch + line * pitch + place]. 2^log2_lanes threads
// of a block process a line, the others further lines. A pitch is a multiple of 32 bytes.
struct WinogradMatrix {
  void* data = nullptr;
  DataType type = DataType::f32;  // for kernels whose types are known only at run time
  int lines = 0, places = 0;
  Index pitch = 0, matrix_pitch = 0;
  int log2_lanes = 5;
  Divisor blocks_of_line;
};

inline constexpr int winograd_threads = 128;

// Element (line, place) of every matrix comes from the filter of channels (line, place).
struct WinogradFilterParameters {
  void const* filter = nullptr;  // the part's first tap
  DataType type = DataType::f32;
  int rows = 0, columns = 0;                // taps of the part; those that it lacks are zeros
  Index row_stride = 0, column_stride = 0;  // elements between taps
  Index line_stride = 0, place_stride = 0;
  WinogradMatrix to;
};

// The index of a tile has three digits: image, row of tiles and column of tiles, in any order. `stride` of a
// digit selects the image; `down` and `right` are rows and columns of its outputs.
struct WinogradImageParameters {
  void const* image = nullptr;  // element (0, 0) of the slice's first image
  DataType type = DataType::f32;
  IndexStrides tiles;
  int top = 0, left = 0;  // the corner of the first tile's first window
  int height = 0, width = 0;
  Index row_stride = 0, column_stride = 0, channel_stride = 0;
  WinogradMatrix to;
};

// The tiles of dy in the order of those of x.
struct WinogradGradientParameters {
  void const* gradient = nullptr;  // element (0, 0) of the slice's first image
  DataType type = DataType::f32;
  IndexStrides tiles;
  int rows = 0, columns = 0;
  Index row_stride = 0, column_stride = 0, channel_stride = 0;
  WinogradMatrix to;
};

// Element (line, place) of the sums of `parts` slices, `part_stride` elements apart, is the gradient of the
// filter of channels (line, place). The `number` of a channel or tap determines its index, n or m of the
// result.
template <class Epilogue, class Destination>
struct WinogradTapsParameters {
  WinogradMatrix from;
  int parts = 1;
  Index part_stride = 0;
  int channel_number = 0, row_number = 0, column_number = 0;
  Destination d;
  Epilogue epilogue;
};

// `stride` of the tiles' digits determines the pixel's index, m or n of the result.
template <class Epilogue, class Destination>
struct WinogradResultParameters {
  WinogradMatrix from;
  IndexStrides tiles;
  int first_pixel = 0;  // index of the slice's first pixel
  int rows = 0, columns = 0;
  int row_number = 0, column_number = 0;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
