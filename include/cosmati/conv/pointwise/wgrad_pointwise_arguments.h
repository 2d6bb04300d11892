// Compile-time geometry and launch parameters of wgrad_pointwise.
#pragma once
#include "cosmati/arch/config.h"
#include "cosmati/core/config.h"

namespace cosmati {

// One of the two tensors: in shared memory, a block has `width` channels of each pixel.
struct WgradPointwiseOperand {
  int channels = 1;  // of the tensor
  int width = 1;     // at most; those beyond the last channel are zeros
  // Whether a block has all channels of pixels that are adjacent in memory, so that pixels of any number of
  // channels are copied 16 bytes at a time. Otherwise channels are in units of 16 bytes.
  bool contiguous = true;
  friend COSMATI_CONSTEXPR bool operator==(WgradPointwiseOperand const&,
                                           WgradPointwiseOperand const&) = default;

  COSMATI_CONSTEXPR bool in_units() const { return width % 8 == 0; }
  COSMATI_CONSTEXPR int pitch() const { return width * 2; }  // bytes of a pixel in shared memory
};

// The rows of the product are the channels of one tensor, the columns those of the other one, and its depth
// the pixels. A warp has `row_fragments` times 16 rows and `column_fragments` times 8 columns;
// `warps_of_depth` warps have the same ones, and other pixels.
struct WgradPointwiseShape {
  WgradPointwiseOperand rows, columns;
  int row_fragments = 1, column_fragments = 1;
  int warps_of_rows = 1, warps_of_columns = 1, warps_of_depth = 1;
  int run = 8;  // pixels that are adjacent in shared memory: even, of pixels that are not in units 8
  int stages = 3;
  int blocks = 1;      // per multiprocessor
  int sum_slices = 4;  // threads of the second kernel that add a sum
  bool early = false;  // both kernels start before the previous one ends (compute capability 9.0)
  friend COSMATI_CONSTEXPR bool operator==(WgradPointwiseShape const&, WgradPointwiseShape const&) = default;

  COSMATI_CONSTEXPR int threads() const { return warps_of_rows * warps_of_columns * warps_of_depth * 32; }
  COSMATI_CONSTEXPR int block_rows() const { return row_fragments * warps_of_rows * 16; }
  COSMATI_CONSTEXPR int block_columns() const { return column_fragments * warps_of_columns * 8; }
  COSMATI_CONSTEXPR int sums() const { return block_rows() * block_columns(); }
  // A stage has eight runs of pixels, and a matrix of an mma one pixel of each: with an odd number of 16-byte
  // units from run to run, they are in different banks, whatever the number of channels.
  static constexpr int runs = 8;
  COSMATI_CONSTEXPR int pixels() const { return runs * run; }
  COSMATI_CONSTEXPR int steps() const { return run / 2; }  // of an mma's depth of 16 pixels
  COSMATI_CONSTEXPR int run_units(WgradPointwiseOperand const& of) const { return run * of.pitch() / 16; }
  COSMATI_CONSTEXPR int run_bytes(WgradPointwiseOperand const& of) const { return (run_units(of) | 1) * 16; }
  COSMATI_CONSTEXPR int stage_bytes() const { return runs * (run_bytes(rows) + run_bytes(columns)); }
  // The stages; later the sums of warps of the same rows and columns, whose rows are 8 floats apart from a
  // multiple of 32.
  COSMATI_CONSTEXPR int sum_pitch() const { return (block_columns() + 31) / 32 * 32 + 8; }
  COSMATI_CONSTEXPR int shared_bytes() const {
    int const operands = stages * stage_bytes();
    int const result = warps_of_depth * block_rows() * sum_pitch() * 4;
    return operands > result ? operands : result;
  }
};

struct WgradPointwiseArguments {
  struct Tensor {
    void const* data = nullptr;
    int pixel_stride = 0;  // in elements
  };
  Tensor rows, columns;
  int pixels = 0;
  // Sums of every block: (block, band of rows, band of columns, row, column), f32.
  float* partials = nullptr;
  int blocks = 0, row_bands = 1, column_bands = 1;
  bool rows_are_filters = true;
  int channel_number = 0;     // increment of the result's index
  WgradPointwiseShape shape;  // for a kernel compiled without a fixed shape
};

template <class Epilogue, class Destination>
struct WgradPointwiseParameters {
  WgradPointwiseArguments all;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
