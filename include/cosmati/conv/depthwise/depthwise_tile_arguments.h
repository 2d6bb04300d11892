// Compile-time shape and launch parameters of the filter gradient of a depthwise convolution by blocks that
// keep their pixels in shared memory.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/core/config.h"

namespace cosmati {

// A block has `channels` adjacent channels, of which a thread has `vector`, and a warp has one row of taps.
struct DepthwiseTileShape {
  int channels = 1, vector = 1;
  int run = 1;  // columns of dy that a thread multiplies at a time
  int row_taps = 1, column_taps = 1, row_step = 1, column_step = 1;
  int warps = 1;         // of each row of taps
  int cluster = 1;       // blocks that share the pixels of a tile of channels
  bool ragged = false;   // the last run of a row is shorter
  bool divided = false;  // units are parts of the rows of an image, else all
  bool early = false;    // starts before the previous kernel ends (compute capability 9.0)
  // If one run is a whole row: the columns of x and the padding before them, which then are constants, so
  // that no padding is stored, read or multiplied; otherwise 0.
  int whole = 0, before = 0;

  COSMATI_CONSTEXPR int taps() const { return row_taps * column_taps; }
  COSMATI_CONSTEXPR int threads() const { return row_taps * warps * 32; }
  COSMATI_CONSTEXPR int lanes() const { return channels / vector; }     // vectors of a pixel
  COSMATI_CONSTEXPR int slots() const { return 32 / lanes() * warps; }  // runs that a row of taps has at once
  COSMATI_CONSTEXPR int columns_in() const { return (run - 1) * column_step + column_taps; }
  // Resident blocks per multiprocessor that registers allow: 64 for each thread.
  COSMATI_CONSTEXPR int blocks() const { return 1024 / threads(); }
  friend COSMATI_CONSTEXPR bool operator==(DepthwiseTileShape const&, DepthwiseTileShape const&) = default;
};

// Whether column i that a run reads can exist; not a member, since the address of a constant shape would be
// taken, and all registers with such an index would be in memory.
COSMATI_CONSTEXPR bool has_column(int i, int whole, int before) {
  return whole == 0 || (i >= before && i < before + whole);
}

// The pixels of one tensor: in global memory, with strides in elements between them (offsets fit in 32 bits),
// and in shared memory, where each unit has `rows` rows of `columns` pixels, `pitch` apart.
struct DepthwiseTilePixels {
  void const* data = nullptr;
  int image_stride = 0, row_stride = 0, column_stride = 0;
  int height = 1, width = 1;  // of the tensor
  Divisor rows, columns;
  int pitch = 1;
};

// A unit is a part of the rows of dy of an image, with the rows of x that its windows contain.
struct DepthwiseTileArguments {
  DepthwiseTilePixels image, gradient;
  int pad_row = 0, pad_column = 0;
  Divisor row_parts;                              // units of an image
  int units = 1, units_of_block = 1;              // in all; at most
  Divisor block_rows;                             // rows of dy of a block
  int items = 1;                                  // runs of all rows of a block
  int tap_row_number = 0, tap_column_number = 0;  // increments of the result's index, m or n, per tap
  bool swapped = false;                           // m is the tap, n the channel
};

template <class Epilogue, class Destination>
struct DepthwiseTileParameters {
  DepthwiseTileArguments all;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
