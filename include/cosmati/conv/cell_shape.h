// The compile-time geometry of dgrad_small_c on tensor cores. A cell is a rectangle of pixels of dx whose
// windows of dy are read together.
#pragma once
#include "cosmati/conv/dgrad_small_c_shape.h"

namespace cosmati {

// A cell has places() pixels along an axis. Pixel h = cell * places() + place of dx receives a contribution,
// by tap t, from position cell * cells + lowest() + window of dy if h + pad - t * dilation is `stride` times
// that position.
struct CellAxis {
  int stride = 1, taps = 1, dilation = 1, pad = 0;
  int cells = 1;  // multiples of the stride in a cell
  COSMATI_CONSTEXPR int places() const { return stride * cells; }
  COSMATI_CONSTEXPR int lowest() const { return -floor_divide((taps - 1) * dilation - pad, stride); }
  COSMATI_CONSTEXPR int highest() const { return floor_divide(places() - 1 + pad, stride); }
  // The number of positions of dy in a cell's window.
  COSMATI_CONSTEXPR int reach() const { return highest() - lowest() + 1; }
  // The tap that connects a position of the window to a place of the cell; -1 if there is none.
  COSMATI_CONSTEXPR int tap(int place, int window) const {
    int const rest = place + pad - (lowest() + window) * stride;
    return rest >= 0 && rest % dilation == 0 && rest / dilation < taps ? rest / dilation : -1;
  }
  friend COSMATI_CONSTEXPR bool operator==(CellAxis const&, CellAxis const&) = default;
};

struct CellShape {
  CellAxis rows, columns;
  int channels = 1;               // of dx, at most max_channels
  int packs = 1;                  // steps of 32 bytes of dy's channels in shared memory at a time
  int down = 1, across = 16;      // cells of a block's tile
  int warps = 4, fragments = 1;   // fragments of 16 cells of each warp
  int blocks = 1;                 // resident blocks per multiprocessor
  bool channels_together = true;  // channels of dx are contiguous along n
  friend COSMATI_CONSTEXPR bool operator==(CellShape const&, CellShape const&) = default;

  static constexpr int max_channels = 8;  // the columns of an mma
  COSMATI_CONSTEXPR int threads() const { return warps * 32; }
  COSMATI_CONSTEXPR int cells() const { return down * across; }
  COSMATI_CONSTEXPR int places() const { return rows.places() * columns.places(); }
  // Whether the columns of an mma are the channels of all pixels in a row of a cell. A fragment of the filter
  // then belongs to a row of taps and a column of the window, and is zero where no tap connects the two.
  COSMATI_CONSTEXPR bool merges() const {
    bool const fits = columns.places() * channels <= max_channels;
    return columns.places() > 1 && fits && columns.reach() <= columns.taps;
  }
  COSMATI_CONSTEXPR int mma_columns() const { return merges() ? columns.places() * channels : channels; }
  // The sums of a cell, and the fragments of the filter.
  COSMATI_CONSTEXPR int groups() const { return merges() ? rows.places() : places(); }
  COSMATI_CONSTEXPR int filter_columns() const { return merges() ? columns.reach() : columns.taps; }
  COSMATI_CONSTEXPR int taps() const { return rows.taps * filter_columns(); }
  // The fragment of the filter for a position (r, s) of the window and a group of sums; -1 if there is none.
  COSMATI_CONSTEXPR int tap(int group, int r, int s) const {
    int const across_cell = merges() ? 1 : columns.places();
    int const row = rows.tap(group / across_cell, r);
    int const column = merges() ? s : columns.tap(group % across_cell, s);
    return row < 0 || column < 0 ? -1 : row * filter_columns() + column;
  }
  // Whether a thread reads a fragment of the filter once for all sums of a cell.
  COSMATI_CONSTEXPR bool keeps_taps() const { return taps() <= 25; }
  COSMATI_CONSTEXPR int halo_rows() const { return (down - 1) * rows.cells + rows.reach(); }
  COSMATI_CONSTEXPR int halo_columns() const { return (across - 1) * columns.cells + columns.reach(); }
  COSMATI_CONSTEXPR int halo() const { return halo_rows() * halo_columns(); }
  // Bytes between positions of dy in shared memory: an odd number of 16-byte units, so that eight adjacent
  // ones are in different banks.
  COSMATI_CONSTEXPR int pitch() const { return packs * 32 + 16; }
  // Bytes of one buffer, which also has room for a tile's sums.
  COSMATI_CONSTEXPR int buffer_bytes() const {
    int const sums = cells() * places() * channels * 4;
    int const bytes = halo() * pitch() > sums ? halo() * pitch() : sums;
    return (bytes + 15) / 16 * 16;
  }
  // Bytes of the filter's fragments for `chunks` times `packs` steps.
  COSMATI_CONSTEXPR int filter_bytes(int chunks) const { return taps() * chunks * packs * 256; }
  COSMATI_CONSTEXPR int shared_bytes(int chunks) const { return filter_bytes(chunks) + 2 * buffer_bytes(); }
};

// The emulator's kernel has its shape in the arguments; these are its arrays.
inline constexpr int unfixed_cell_warps = 2, unfixed_cell_groups = 8;

}  // namespace cosmati
