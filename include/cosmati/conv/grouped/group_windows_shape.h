// The compile-time geometry of group_windows: which part of the image is in shared memory at a time.
#pragma once
#include "cosmati/conv/grouped/grouped_shape.h"

namespace cosmati {

// A block computes the results of `groups` adjacent groups of channels. A step multiplies down x across
// patches of 8 x 8 outputs of each of `images` images. A line of shared memory contains 64 channels of a
// pixel, 128 bytes. With a step of two columns, even and odd columns of the image are separate phases, so
// that the outputs of a row read adjacent lines for each tap.
struct GroupWindowsShape {
  GroupedAxis rows, columns;
  int inputs = 16, outputs = 16;  // channels of a group: those that are summed, and those of the result
  int images = 1, down = 1, across = 1;
  int stages = 2, consumers = 2;  // consumers: warpgroups that multiply
  int blocks = 1;                 // resident blocks per multiprocessor
  bool transposed = false;  // a data gradient: adjacent elements of the filter are channels of the result
  friend COSMATI_CONSTEXPR bool operator==(GroupWindowsShape const&, GroupWindowsShape const&) = default;

  static constexpr int line_channels = 64, line_bytes = 128, patch = 8, depth = 16;  // depth: of a product
  COSMATI_CONSTEXPR int groups() const { return line_channels / inputs; }
  COSMATI_CONSTEXPR int taps() const { return rows.taps * columns.taps; }
  COSMATI_CONSTEXPR int phases() const { return columns.step; }
  COSMATI_CONSTEXPR int threads() const { return 128 * consumers + 32; }

  COSMATI_CONSTEXPR int image_columns() const {
    return across * patch + ((columns.taps - 1) * columns.dilation + columns.step - 1) / columns.step;
  }
  COSMATI_CONSTEXPR int image_rows() const { return rows.reach(down * patch); }
  COSMATI_CONSTEXPR int image_lines() const { return images * image_rows() * image_columns(); }
  COSMATI_CONSTEXPR int patches() const { return images * down * across; }
  COSMATI_CONSTEXPR int phase_bytes() const { return (image_lines() + 7) / 8 * 8 * line_bytes; }
  COSMATI_CONSTEXPR int stage_bytes() const { return phases() * phase_bytes(); }
  COSMATI_CONSTEXPR int copied_bytes() const { return phases() * image_lines() * line_bytes; }

  // The columns of a product: the group's outputs, and others that are not stored.
  COSMATI_CONSTEXPR int columns_of_product() const { return outputs <= 16 ? 16 : outputs <= 32 ? 32 : 64; }
  // A line of the filter: the contiguous channels of a tap, in 32, 64 or 128 bytes.
  COSMATI_CONSTEXPR int filter_line_channels() const {
    int const channels = transposed ? outputs : inputs;
    return channels <= 16 ? 16 : channels <= 32 ? 32 : 64;
  }
  COSMATI_CONSTEXPR int filter_line_bytes() const { return filter_line_channels() * 2; }
  // The lines of a tap: those of all groups; the last group's product reads columns_of_product() of them.
  COSMATI_CONSTEXPR int group_lines() const { return transposed ? inputs : outputs; }
  COSMATI_CONSTEXPR int tap_lines() const {
    return transposed ? groups() * inputs : (groups() - 1) * outputs + columns_of_product();
  }
  COSMATI_CONSTEXPR int filter_bytes() const { return taps() * tap_lines() * filter_line_bytes(); }
  COSMATI_CONSTEXPR int all_filters_bytes() const { return (filter_bytes() + 1023) / 1024 * 1024; }
  // 16 rows of 32 sums for each warp.
  static constexpr int staged_columns = 32, staged_pitch = staged_columns + 8;
  COSMATI_CONSTEXPR int staged_bytes() const { return consumers * 4 * 16 * staged_pitch * 4; }
  COSMATI_CONSTEXPR int shared_bytes() const {
    int const barriers = (2 * stages + 1) * 8;
    return (all_filters_bytes() + stages * stage_bytes() + staged_bytes() + barriers + 1023) / 1024 * 1024;
  }
};

}  // namespace cosmati
