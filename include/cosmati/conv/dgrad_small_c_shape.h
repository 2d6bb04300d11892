// The compile-time geometry of dgrad_small_c. A cell is the stride x stride pixels of dx with the same window
// of dy.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

COSMATI_CONSTEXPR int floor_divide(int value, int by) {
  return value >= 0 ? value / by : -((by - 1 - value) / by);
}

// Position h = cell * stride + place of dx receives tap t from position cell + step(t) of dy (plus a constant
// that the launch adds) if h + pad - t * dilation is a multiple of the stride: one `place` for each tap.
struct DgradSmallCAxis {
  int stride = 1, taps = 1, dilation = 1;
  int pad = 0;  // 0 <= pad < stride
  COSMATI_CONSTEXPR int step(int tap) const { return -floor_divide(tap * dilation - pad, stride); }
  COSMATI_CONSTEXPR int place(int tap) const { return tap * dilation - pad + step(tap) * stride; }
  COSMATI_CONSTEXPR int lowest() const { return step(taps - 1); }
  // Positions of dy in a cell's window.
  COSMATI_CONSTEXPR int reach() const { return step(0) - lowest() + 1; }
  COSMATI_CONSTEXPR int window(int tap) const { return step(tap) - lowest(); }
  friend COSMATI_CONSTEXPR bool operator==(DgradSmallCAxis const&, DgradSmallCAxis const&) = default;
};

// Which results of a thread are contiguous along n.
enum class DgradSmallCRun : unsigned char { columns, channels, none };

struct DgradSmallCShape {
  DgradSmallCAxis rows, columns;
  int channels = 1;  // of dx per thread
  // A thread computes `cells` cells of a column; a block has threads_down * threads_across * `parts` threads.
  // Each part sums a share of dy's channels, of which `inputs` are in shared memory at a time.
  int cells = 1, threads_down = 4, threads_across = 32, parts = 1, inputs = 1;
  int blocks = 1;              // resident blocks per multiprocessor
  int vector = 1, pieces = 1;  // channels per access to dy; adjacent accesses
  bool async = false;          // copies dy by cp.async
  DgradSmallCRun run = DgradSmallCRun::none;
  friend COSMATI_CONSTEXPR bool operator==(DgradSmallCShape const&, DgradSmallCShape const&) = default;

  COSMATI_CONSTEXPR int threads() const { return threads_down * threads_across * parts; }
  COSMATI_CONSTEXPR int cells_down() const { return threads_down * cells; }
  COSMATI_CONSTEXPR int halo_rows() const { return cells_down() + rows.reach() - 1; }
  COSMATI_CONSTEXPR int halo_columns() const { return threads_across + columns.reach() - 1; }
  COSMATI_CONSTEXPR int halo() const { return halo_rows() * halo_columns(); }
  // The distance between channels of dy in shared memory: 2 more than a multiple of 4, so that two groups of
  // 8 channels fall into different banks.
  COSMATI_CONSTEXPR int pitch() const { return halo() + (6 - halo() % 4) % 4; }
  // The length of a row of taps for all channels, rounded up to 16-byte vectors of 4-byte elements.
  COSMATI_CONSTEXPR int row_pitch() const { return (columns.taps * channels + 3) / 4 * 4; }
  COSMATI_CONSTEXPR int weights() const { return inputs * rows.taps * row_pitch(); }
  COSMATI_CONSTEXPR int sums() const { return cells * rows.stride * columns.stride * channels; }
  COSMATI_CONSTEXPR int run_length() const {
    return run == DgradSmallCRun::columns ? columns.stride : run == DgradSmallCRun::channels ? channels : 1;
  }
  // Shared-memory values per block; the sums reuse the space of weights and values.
  COSMATI_CONSTEXPR int shared_values() const {
    int const loop = weights() + inputs * pitch(), end = sums() * threads();
    return loop > end ? loop : end;
  }
};

// `fixed`: `shape` is that of the launch; otherwise only its number of threads applies, and the launch passes
// the shape.
struct DgradSmallCPolicy {
  DgradSmallCShape shape = {};
  bool fixed = true;
};

// The extents of a thread's arrays.
struct DgradSmallCBound {
  int cells, stride_rows, stride_columns, channels, value_rows, value_columns, weights, run;
};
COSMATI_CONSTEXPR DgradSmallCBound bound_of(DgradSmallCShape const& shape) {
  return {shape.cells,
          shape.rows.stride,
          shape.columns.stride,
          shape.channels,
          shape.cells + shape.rows.reach() - 1,
          shape.columns.reach(),
          shape.row_pitch(),
          shape.run_length()};
}
COSMATI_CONSTEXPR bool is_within(DgradSmallCBound const& bound, DgradSmallCBound const& maximum) {
  return bound.cells <= maximum.cells && bound.stride_rows <= maximum.stride_rows &&
         bound.stride_columns <= maximum.stride_columns && bound.channels <= maximum.channels &&
         bound.value_rows <= maximum.value_rows && bound.value_columns <= maximum.value_columns &&
         bound.weights <= maximum.weights && bound.run <= maximum.run;
}
// The limits of a kernel whose shape is known only at run time.
inline constexpr DgradSmallCBound largest_dgrad_small_c_bound{2, 4, 4, 4, 9, 8, 32, 4};
inline constexpr int unfixed_dgrad_small_c_threads = 64;

}  // namespace cosmati
