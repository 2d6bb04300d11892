// The compile-time geometry of the grouped convolution on tensor cores (conv/grouped/grouped.h).
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// An axis of the windows: output o reads tap t from position o * step + t * dilation of the image.
struct GroupedAxis {
  int taps = 3, step = 1, dilation = 1;
  COSMATI_CONSTEXPR int reach(int outputs) const { return (outputs - 1) * step + (taps - 1) * dilation + 1; }
  friend COSMATI_CONSTEXPR bool operator==(GroupedAxis const&, GroupedAxis const&) = default;
};

// A block computes a tile of `images` x `down` x `across` outputs for `groups` adjacent groups. A quad is 8
// bytes of adjacent channels of a pixel, four in 16 bits and two in tf32; the depth of an mma is four quads
// of the windows.
struct GroupedShape {
  GroupedAxis rows, columns;
  int inputs = 4, outputs = 4;  // channels of a group: those that are summed, and those of the result
  int groups = 16;
  int images = 1, down = 8, across = 16;
  int fragments = 1;  // fragments of 8 outputs of a group per warp
  int warps = 8;
  int blocks = 1;        // resident blocks per multiprocessor
  bool masked = false;   // some phases of a data gradient have fewer taps
  bool together = true;  // the filter's summed channels are contiguous, in units of 8 bytes
  int bytes = 2;         // of an element of the factors
  friend COSMATI_CONSTEXPR bool operator==(GroupedShape const&, GroupedShape const&) = default;

  static constexpr int pass_pixels = 64, pass_rows = pass_pixels / 16;  // rows: of mmas
  COSMATI_CONSTEXPR int threads() const { return warps * 32; }
  COSMATI_CONSTEXPR int taps() const { return rows.taps * columns.taps; }
  COSMATI_CONSTEXPR int of_quad() const { return 8 / bytes; }         // channels
  COSMATI_CONSTEXPR int quads() const { return inputs / of_quad(); }  // of a tap
  // Steps of four quads.
  COSMATI_CONSTEXPR int steps() const { return (taps() * quads() + 3) / 4; }
  COSMATI_CONSTEXPR int pixels() const { return images * down * across; }
  COSMATI_CONSTEXPR int halo_rows() const { return rows.reach(down); }
  COSMATI_CONSTEXPR int halo_columns() const { return columns.reach(across); }
  COSMATI_CONSTEXPR int halo() const { return images * halo_rows() * halo_columns(); }
  COSMATI_CONSTEXPR int line_bytes() const { return groups * inputs * bytes; }
  // Bytes between adjacent pixels in shared memory. Modulo 128, this is the number of bytes, at most 32, that
  // the lanes of a row of an mma read from one pixel, so that four adjacent pixels are in different banks.
  COSMATI_CONSTEXPR int pitch() const {
    int const offset = inputs * bytes < 32 ? inputs * bytes : 32;
    return (line_bytes() - offset + 127) / 128 * 128 + offset;
  }
  COSMATI_CONSTEXPR int copied_bytes() const { return pitch() % 16 == 0 && line_bytes() % 16 == 0 ? 16 : 8; }
  COSMATI_CONSTEXPR int channels() const { return groups * outputs; }  // of the result
  COSMATI_CONSTEXPR int run() const { return channels() % 8 == 0 ? 8 : 4; }
  COSMATI_CONSTEXPR int image_bytes() const { return (halo() * pitch() + 15) / 16 * 16; }
  // Floats between pixels in the staged sums; four adjacent pixels are in different banks.
  COSMATI_CONSTEXPR int staged_pitch() const { return (channels() + 31) / 32 * 32 + 8; }
  COSMATI_CONSTEXPR int staged_bytes() const { return pass_pixels * staged_pitch() * 4; }
  COSMATI_CONSTEXPR int passes() const { return (pixels() + pass_pixels - 1) / pass_pixels; }
  // 16 bytes of zeros, the windows, the sums of a pass, and a GroupedPixel for each output.
  COSMATI_CONSTEXPR int shared_bytes() const {
    return 16 + image_bytes() + staged_bytes() + passes() * pass_pixels * 8;
  }
  // A warp's work in a pass: `fragments` of a group, for every `share`-th row of mmas.
  COSMATI_CONSTEXPR int works() const { return groups * ((outputs + 7) / 8 / fragments); }
  COSMATI_CONSTEXPR int share() const {
    int const warps_of_work = warps / works();
    return warps_of_work < 1 ? 1 : warps_of_work < pass_rows ? warps_of_work : pass_rows;
  }
  COSMATI_CONSTEXPR int works_of_warp() const { return (works() * share() + warps - 1) / warps; }
  // Rows of mmas that a warp multiplies together.
  COSMATI_CONSTEXPR int rows_together() const { return share() * 2 <= pass_rows ? 2 : 1; }
};

// An output of a tile: the first byte of its window in shared memory, and its index m in the result, negative
// if it does not exist.
struct GroupedPixel {
  int start, m;
};

// The pieces of a pixel that a thread copies, of `pieces` in all.
COSMATI_CONSTEXPR int pieces_together(int pieces) {
  return pieces % 4 == 0 ? 4 : pieces % 3 == 0 ? 3 : pieces % 2 == 0 ? 2 : 1;
}

// The emulator's kernel has its shape in the arguments; these are its arrays.
inline constexpr int unfixed_grouped_warps = 2, unfixed_grouped_steps = 18, unfixed_grouped_works = 4;

}  // namespace cosmati
