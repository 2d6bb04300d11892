// The compile-time geometry of wgrad_taps: which parts of dy and x are in shared memory at a time.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// An axis of the windows: the taps whose sums a block keeps, and the steps of outputs and taps.
struct WgradTapsAxis {
  int taps = 3, stride = 1, dilation = 1;
  COSMATI_CONSTEXPR int reach() const { return (taps - 1) * dilation; }
  friend COSMATI_CONSTEXPR bool operator==(WgradTapsAxis const&, WgradTapsAxis const&) = default;
};

// A line of shared memory contains 64 channels of a pixel, 128 bytes.
inline constexpr int wgrad_taps_channels = 64, wgrad_taps_line = 128;

// A step multiplies `down` x `across` outputs of each of `images` images; across is a multiple of 8. The
// columns of x are divided into as many phases as the stride of the columns, 1 or 2, so that the outputs of a
// row pair with adjacent lines of x for each tap.
struct WgradTapsShape {
  WgradTapsAxis rows, columns;
  int across = 16, down = 4, images = 1, stages = 3;
  bool has_odd_rows = false;  // with an odd number of rows, the last one is multiplied alone

  COSMATI_CONSTEXPR int phases() const { return columns.stride; }
  COSMATI_CONSTEXPR int image_columns() const {
    return across + (columns.reach() + columns.stride - 1) / columns.stride;
  }
  COSMATI_CONSTEXPR int image_rows() const { return (down - 1) * rows.stride + rows.reach() + 1; }
  COSMATI_CONSTEXPR int gradient_lines() const { return images * down * across; }
  COSMATI_CONSTEXPR int image_lines() const { return images * image_rows() * image_columns(); }

  // An instruction multiplies 16 outputs, two groups of 8 that lie in one row, or at the same columns of two
  // rows, or of two images.
  COSMATI_CONSTEXPR bool pairs_columns() const { return across % 16 == 0; }
  COSMATI_CONSTEXPR bool pairs_rows() const { return !pairs_columns() && down % 2 == 0; }
  COSMATI_CONSTEXPR bool pairs_images() const { return !pairs_columns() && !pairs_rows(); }
  // The distance in lines from the first to the second group of 8.
  COSMATI_CONSTEXPR int gradient_pair() const {
    return pairs_columns() ? 8 : pairs_rows() ? across : down * across;
  }
  COSMATI_CONSTEXPR int image_pair() const {
    return pairs_columns() ? 8 : image_columns() * (pairs_rows() ? rows.stride : image_rows());
  }

  COSMATI_CONSTEXPR int threads() const { return 128 * (columns.taps + 1); }
  COSMATI_CONSTEXPR int copied_bytes() const {
    return (gradient_lines() + phases() * image_lines()) * wgrad_taps_line;
  }
  // 8 lines of zeros precede dy and each phase of x.
  COSMATI_CONSTEXPR static int lines_in_patterns(int lines) { return 8 + (lines + 7) / 8 * 8; }
  COSMATI_CONSTEXPR int stage_bytes() const {
    return (lines_in_patterns(gradient_lines()) + phases() * lines_in_patterns(image_lines())) *
           wgrad_taps_line;
  }
  COSMATI_CONSTEXPR int shared_bytes() const { return (stages * (stage_bytes() + 16) + 1023) / 1024 * 1024; }
  friend COSMATI_CONSTEXPR bool operator==(WgradTapsShape const&, WgradTapsShape const&) = default;
};

}  // namespace cosmati
