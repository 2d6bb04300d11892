// Compile-time geometry and launch parameters of wgrad_small_c.
#pragma once
#include "cosmati/conv/small_c/fprop_small_c_arguments.h"

namespace cosmati {

struct WgradSmallCShape {
  // The tile of outputs, with the rows of taps of a block, and the patch of x. A warp has the sums of
  // `fragments` fragments of 16 filters for all those taps. Two taps of 4 elements share a tile of columns,
  // so the columns of taps are then rounded up to an even number.
  FpropSmallCShape tile;
  int warps_of_filters = 1;  // the other warps have the same filters, and other outputs of the tile
  int gradient_unit = 16;    // bytes of a copy of dy: 16, 8 or 4
  friend COSMATI_CONSTEXPR bool operator==(WgradSmallCShape const&, WgradSmallCShape const&) = default;

  COSMATI_CONSTEXPR int filters() const { return 16 * tile.fragments * warps_of_filters; }
  COSMATI_CONSTEXPR int warps_of_outputs() const { return tile.warps / warps_of_filters; }
  // Columns of sums are the taps of a row and their channels, in tiles of 8 columns, and rows of taps.
  COSMATI_CONSTEXPR int tiles_of_row() const { return (tile.columns.taps * tile.place + 7) / 8; }
  COSMATI_CONSTEXPR int tiles() const { return tile.rows.taps * tiles_of_row(); }
  // The depth of an mma is 32 bytes of outputs. `size`: bytes of an element.
  COSMATI_CONSTEXPR int steps(int size) const { return (tile.outputs() * size + 31) / 32; }
  COSMATI_CONSTEXPR int outputs_of_steps(int size) const { return steps(size) * (32 / size); }
  // Bytes between the outputs of dy in shared memory, so that the lanes of a load are in different banks:
  // those of eight outputs, 16 bytes of each, or of four, 32 bytes of each.
  COSMATI_CONSTEXPR int gradient_pitch(int size) const {
    return size == 2 ? filters() * 2 + 16 : (filters() * 4 + 127) / 128 * 128 + 32;
  }
  COSMATI_CONSTEXPR int gradient_bytes(int size) const {
    return outputs_of_steps(size) * gradient_pitch(size);
  }
  static constexpr int zero_bytes = 32;
  // Zeros, two patches, and two tiles of dy; later the sums of the tiles of columns and of the bias.
  COSMATI_CONSTEXPR int shared_bytes(int size, int column_tiles) const {
    int const operands = zero_bytes + 2 * (tile.patch_bytes(size) + gradient_bytes(size));
    int const sums = filters() * ((column_tiles + 1) * 8 + 8) * 4;
    return operands > sums ? operands : sums;
  }
};

// The emulator's kernels have their shapes in the arguments, except for these.
inline constexpr int unfixed_wgrad_tiles = 15;  // of columns, at most

struct WgradSmallCArguments {
  FpropSmallCArguments window;  // of x; filters, height and width are those of dy
  void const* gradient = nullptr;
  Index gradient_image = 0;
  int gradient_row = 0, gradient_column = 0;  // strides in elements
  // Sums of every block: (block, band of filters, band of rows of taps, filter, column), f32.
  float* partials = nullptr;
  int blocks = 0, tap_bands = 1;
  int channel_number = 0, tap_row_number = 0, tap_column_number = 0;  // increments of the result's index
  int tap_rows = 0, tap_columns = 0;                                  // of the whole filter
  float* bias = nullptr;                                              // the sum of dy, if not null
  Index bias_stride = 0;
  WgradSmallCShape shape;  // for a kernel compiled without a fixed shape
};

template <class Epilogue, class Destination>
struct WgradSmallCParameters {
  WgradSmallCArguments all;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
