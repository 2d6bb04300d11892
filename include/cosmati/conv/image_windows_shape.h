// The compile-time geometry of image_windows: which part of the image is in shared memory at a time.
#pragma once
#include "cosmati/conv/grouped/grouped_shape.h"

namespace cosmati {

// A patch is 8 columns by `patch_rows` rows of outputs, the columns of a product, whose rows are 64 channels
// of the result. A line of shared memory contains 64 channels of a pixel, 128 bytes. The warpgroups either
// multiply adjacent patches of a tile, down x across, or alternate: tiles are single patches, and one
// warpgroup stores its results while the other multiplies.
struct ImageWindowsShape {
  GroupedAxis rows, columns;  // without steps
  int patch_rows = 8, down = 1, across = 1;
  int image_stages = 2, filter_stages = 4;
  bool alternates = false;
  bool keeps_filter = false;  // a stage for each tap, which are copied once: up to 64 summed channels
  bool transposed = false;    // a data gradient: adjacent elements of the filter are channels of the result
  friend COSMATI_CONSTEXPR bool operator==(ImageWindowsShape const&, ImageWindowsShape const&) = default;

  static constexpr int patch_columns = 8, outputs = 64, line_channels = 64, line_bytes = 128;
  static constexpr int depth = 16, filter_bytes = outputs * line_bytes;  // of a tap
  COSMATI_CONSTEXPR int taps() const { return rows.taps * columns.taps; }
  COSMATI_CONSTEXPR int patches() const { return down * across; }
  COSMATI_CONSTEXPR int consumers() const { return alternates ? 2 : patches(); }
  COSMATI_CONSTEXPR int threads() const { return 128 * consumers() + 64; }
  COSMATI_CONSTEXPR int product_columns() const { return patch_columns * patch_rows; }

  COSMATI_CONSTEXPR int image_columns() const { return columns.reach(across * patch_columns); }
  COSMATI_CONSTEXPR int image_rows() const { return rows.reach(down * patch_rows); }
  COSMATI_CONSTEXPR int copied_bytes() const { return image_rows() * image_columns() * line_bytes; }
  COSMATI_CONSTEXPR int image_bytes() const { return (copied_bytes() + 1023) / 1024 * 1024; }
  // For each warpgroup, the results of four rows of a patch; adjacent pixels begin at different banks.
  static constexpr int staged_pixels = 32, staged_pitch = 68;
  COSMATI_CONSTEXPR int shared_bytes() const {
    int const staged = consumers() * staged_pixels * staged_pitch * 4,
              barriers = (2 * image_stages + 2 * filter_stages + 2) * 8;
    return (image_stages * image_bytes() + filter_stages * filter_bytes + staged + barriers + 1023) / 1024 *
           1024;
  }
};

}  // namespace cosmati
