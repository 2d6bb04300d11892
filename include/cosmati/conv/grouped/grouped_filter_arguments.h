// Geometry and launch parameters of the filter gradient with groups of few channels on tensor cores
// (conv/grouped/grouped_filter.h).
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/conv/grouped/grouped_shape.h"

namespace cosmati {

// A block has the sums of `groups` adjacent groups, and reads tiles of `images` x `down` x `across` outputs.
// An octet is eight adjacent channels of a pixel, of one group or of two groups of four.
struct GroupedFilterShape {
  GroupedAxis rows, columns;
  int inputs = 8, outputs = 8;  // channels of a group of x and of dy: 4, or a multiple of 8
  int groups = 8;
  int images = 1, down = 8, across = 16;
  int fragments = 1;  // octets of dy per warp
  int warps = 8;
  int blocks = 1;  // resident blocks per multiprocessor
  int slices = 8;  // threads of the second kernel that divide the sums of a weight
  int bytes = 2;   // of an element of x and of dy
  friend COSMATI_CONSTEXPR bool operator==(GroupedFilterShape const&, GroupedFilterShape const&) = default;

  static constexpr int pass_pixels = 32;
  COSMATI_CONSTEXPR int threads() const { return warps * 32; }
  COSMATI_CONSTEXPR int taps() const { return rows.taps * columns.taps; }
  COSMATI_CONSTEXPR int tap_pairs() const { return (taps() + 1) / 2; }
  COSMATI_CONSTEXPR int pixels() const { return images * down * across; }
  COSMATI_CONSTEXPR int halo_rows() const { return rows.reach(down); }
  COSMATI_CONSTEXPR int halo_columns() const { return columns.reach(across); }
  COSMATI_CONSTEXPR int halo() const { return images * halo_rows() * halo_columns(); }
  // Bytes between pixels in shared memory. In 16 bits an odd number of 16-byte units, so that the rows of
  // eight adjacent pixels that ldmatrix reads are in different banks. In tf32, lanes read 32 bytes of each of
  // four pixels that are `step` apart, from different banks unless the step is a multiple of 4.
  COSMATI_CONSTEXPR int pitch(int channels, int step) const {
    if (bytes == 2) return (channels * 2 + 15) / 32 * 32 + 16;
    int const unit = step % 2 == 0 ? 16 : 32;
    return (channels * bytes + unit - 1) / (2 * unit) * (2 * unit) + unit;
  }
  COSMATI_CONSTEXPR int image_pitch() const { return pitch(groups * inputs, columns.step); }
  COSMATI_CONSTEXPR int gradient_pitch() const { return pitch(groups * outputs, 1); }
  // 16 bytes of zeros, the windows, then dy.
  COSMATI_CONSTEXPR int gradient_at() const { return 16 + halo() * image_pitch(); }
  // Then the first byte of each output's window, negative if the output does not exist.
  COSMATI_CONSTEXPR int windows_at() const { return gradient_at() + pixels() * gradient_pitch(); }
  COSMATI_CONSTEXPR int windows() const { return (pixels() + pass_pixels - 1) / pass_pixels * pass_pixels; }
  COSMATI_CONSTEXPR int shared_bytes() const { return windows_at() + windows() * 4; }
  // The octets of dy of the groups of an octet of x, and the first of them.
  COSMATI_CONSTEXPR int octets_of_groups() const {
    int const channels = outputs * (inputs < 8 ? 8 / inputs : 1);
    return channels < 8 ? 1 : channels / 8;
  }
  COSMATI_CONSTEXPR int first_octet(int image_octet) const { return image_octet * 8 / inputs * outputs / 8; }
  COSMATI_CONSTEXPR int works() const { return groups * inputs / 8 * (octets_of_groups() / fragments); }
  // The number of warps that divide the outputs of a work item.
  COSMATI_CONSTEXPR int share() const { return warps / works(); }
};

// The emulator's kernel has its shape in the arguments; this is the size of its array.
inline constexpr int unfixed_grouped_tap_pairs = 13;

// Strides in elements; channels are contiguous. Weights are numbered (filter, row, column, channel of the
// group), as the partial sums [part][weight].
template <class Epilogue, class Destination>
struct GroupedFilterParameters {
  void const* image = nullptr;
  void const* gradient = nullptr;
  float* partials = nullptr;
  Index image_stride = 0, gradient_image = 0;
  int image_row = 0, image_column = 0, gradient_row = 0, gradient_column = 0;
  int images = 0, image_rows = 0, image_columns = 0, outputs_down = 0, outputs_across = 0;
  int top = 0, left = 0;                          // of the first window
  int groups = 1;                                 // of the convolution
  int tiles = 0, parts = 1;                       // parts: of the tiles
  Divisor group_parts, tiles_across, tiles_down;  // for decomposing a block's index and a tile's
  int weights = 0, sums = 1;                      // sums: partial sums per weight
  int channel_number = 0, tap_row_number = 0, tap_column_number = 0;  // increments of the result's index n
  bool swapped = false;                                               // m is (tap, channel), n the filter
  Destination d;
  Epilogue epilogue;
  GroupedFilterShape shape;  // for a kernel compiled without a fixed shape
};

}  // namespace cosmati
