// Compile-time geometry and launch parameters of fprop_small_c.
#pragma once
#include "cosmati/conv/arguments.h"

namespace cosmati {

// Output i reads elements i * stride + tap, counted from the padding's begin.
struct FpropAxis {
  int stride = 1, taps = 1;
  // The number of elements that `outputs` adjacent outputs read.
  COSMATI_CONSTEXPR int reach(int outputs) const { return (outputs - 1) * stride + taps; }
  friend COSMATI_CONSTEXPR bool operator==(FpropAxis const&, FpropAxis const&) = default;
};

// The dimension of the filter that is contiguous, and is read 16 bytes at a time.
enum class FilterUnits { none, channels, filters };

struct FpropSmallCShape {
  FpropAxis rows, columns;
  int channels = 1;  // of x, at most `place`
  int place = 4;     // elements of a pixel in shared memory; the others are zeros
  // Channels are copied, `unit` bytes at a time: those of a pixel, in a place of whole 16 bytes, or all of a
  // flat patch: one row of adjacent pixels for a filter of one tap.
  bool async = false;
  int down = 1, across = 16;     // outputs of a block's tile
  int warps = 4, fragments = 1;  // fragments of 16 outputs per warp
  int bands = 1;                 // bands of 32 filters per block
  int blocks = 1;                // resident blocks per multiprocessor
  FilterUnits filter_units = FilterUnits::none;
  // Not 0: bytes of a pixel of y, whose pixels are adjacent and which one block computes whole. They are
  // collected in shared memory and stored 16 bytes at a time.
  int result_bytes = 0;
  int unit = 16;  // bytes of a copy of x: 16, 8 or 4
  friend COSMATI_CONSTEXPR bool operator==(FpropSmallCShape const&, FpropSmallCShape const&) = default;

  static constexpr int band = 32;  // filters; a lane stores eight adjacent ones
  COSMATI_CONSTEXPR int threads() const { return warps * 32; }
  COSMATI_CONSTEXPR int outputs() const { return down * across; }
  // The patch of x that a tile reads.
  COSMATI_CONSTEXPR int patch_rows() const { return rows.reach(down); }
  COSMATI_CONSTEXPR int patch_columns() const { return columns.reach(across); }
  COSMATI_CONSTEXPR int patch() const { return patch_rows() * patch_columns(); }
  // Whether patches are contiguous copies of pixels that are not whole units of 16 bytes.
  COSMATI_CONSTEXPR bool is_flat(int size) const { return async && place * size % 16 != 0; }
  // Bytes between pixels in shared memory. If a pixel has several 16-byte units, an odd number of them, so
  // that eight adjacent pixels are in different banks.
  COSMATI_CONSTEXPR int pitch(int size) const {
    int const bytes = place * size;
    return bytes % 32 == 0 ? bytes + 16 : bytes;
  }
  // Bytes of a row of taps; a step of an mma covers 32 of them.
  COSMATI_CONSTEXPR int row_bytes(int size) const { return columns.taps * place * size; }
  COSMATI_CONSTEXPR int steps(int size) const { return (row_bytes(size) + 31) / 32; }
  // Bytes of the filter's fragments.
  COSMATI_CONSTEXPR int filter_bytes(int size) const { return rows.taps * steps(size) * bands * 4 * 256; }
  COSMATI_CONSTEXPR int patch_bytes(int size) const { return (patch() * pitch(size) + 15) / 16 * 16; }
  COSMATI_CONSTEXPR int result_offset(int size) const { return filter_bytes(size) + 2 * patch_bytes(size); }
  COSMATI_CONSTEXPR int shared_bytes(int size) const {
    return result_offset(size) + (outputs() * result_bytes + 15) / 16 * 16;
  }
  // Pixels of a patch that a thread loads, unless they are copied.
  COSMATI_CONSTEXPR int pixels() const { return (patch() + threads() - 1) / threads(); }
};

// The emulator's kernels have their shapes in the arguments, except for these.
inline constexpr int unfixed_fprop_warps = 2, unfixed_fprop_pixels = 16;
inline constexpr int unfixed_fprop_bytes[] = {32, 48};  // of a place that is filled by copies
inline constexpr int unfixed_flat_place = 17;           // elements of a pixel of a flat patch
inline constexpr int unfixed_fprop_place = 4;           // elements of other pixels

// Strides in elements.
struct FpropSmallCArguments {
  void const* image = nullptr;   // x
  void const* filter = nullptr;  // tap (0, 0)
  Index image_stride = 0;
  int image_row = 0, image_column = 0, image_channel = 0;
  Index filter_output = 0, filter_input = 0, filter_row = 0, filter_column = 0;
  int image_rows = 0, image_columns = 0;
  int top = 0, left = 0;                                    // padding
  int filters = 0, height = 0, width = 0;                   // of y
  int number_image = 0, number_row = 0, number_column = 0;  // increments of m along y
  Divisor tiles_down, tiles_across;
  int tiles = 0;           // of all images
  FpropSmallCShape shape;  // for a kernel compiled without a fixed shape
};

template <class Epilogue, class Destination>
struct FpropSmallCParameters {
  FpropSmallCArguments window;
  Destination d;
  Epilogue epilogue;
};

}  // namespace cosmati
