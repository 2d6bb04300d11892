// Compile-time parameters of the depthwise_rows kernels.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

inline constexpr int depthwise_rows_threads = 128;

// Forward, a result reads the image at result * step + tap - padding. In a data gradient, the element of dy
// at position i reaches the results i * step + tap - padding.
struct DepthwiseRowsShape {
  bool transposed = false, channels_last = false, packed_filter = false;
  int vector = 1, run = 1;  // channels and columns of results per thread
  int row_taps = 1, column_taps = 1, row_step = 1, column_step = 1;
  // ahead: a row is loaded while the previous one is multiplied. unrolled: the step is unrolled once for each
  // live group, so that sums stay in their registers instead of moving to the next ones after each step.
  bool ahead = false, unrolled = false;
  int blocks = 1;  // resident blocks per multiprocessor that registers allow
  // Rows and columns are those of one phase each, so that taps are adjacent (DepthwiseRowsPhase); steps
  // are 1.
  bool dilated = false;
  // A thread computes one group of rows: all rows that it reads are in flight at once.
  bool alone = false;

  // The number of groups of result rows that one image row contributes to.
  COSMATI_CONSTEXPR int live_groups() const { return (row_taps + row_step - 1) / row_step; }
  // Rows that a step reads and completes.
  COSMATI_CONSTEXPR int rows_in() const { return transposed ? 1 : row_step; }
  COSMATI_CONSTEXPR int rows_out() const { return transposed ? row_step : 1; }
  // Columns of the image that a run reads.
  COSMATI_CONSTEXPR int columns_before() const {
    return transposed ? (column_taps + column_step - 1) / column_step - 1 : 0;
  }
  COSMATI_CONSTEXPR int columns_in() const {
    return transposed ? run / column_step + columns_before() : (run - 1) * column_step + column_taps;
  }
  // Those of them that no run before this one reads.
  COSMATI_CONSTEXPR int own_columns() const {
    int const own = transposed ? run / column_step : run * column_step;
    return own < columns_in() ? own : columns_in();
  }
  friend COSMATI_CONSTEXPR bool operator==(DepthwiseRowsShape const&, DepthwiseRowsShape const&) = default;
};

// A dilated convolution without strides is one without dilation for each phase, the residue of a position
// modulo the dilation: the results at phase + dilation * i read the image at from + dilation * (i + first +
// tap), or, transposed, are reached from the image at from + dilation * (i + first - tap).
struct DepthwiseRowsPhase {
  int from, first;
  COSMATI_CONSTEXPR DepthwiseRowsPhase(int phase, int dilation, int pad, bool transposed) {
    int const at = transposed ? phase + pad : phase - pad;
    first = at >= 0 ? at / dilation : -((dilation - 1 - at) / dilation);
    from = at - first * dilation;
  }
  // The positions of a phase among `extent`.
  static COSMATI_CONSTEXPR int positions(int extent, int phase, int dilation) {
    return (extent - phase + dilation - 1) / dilation;
  }
};

// Maps taps to registers. All functions use only compile-time constants: a shape that a kernel reads at run
// time would be in memory, and so would everything indexed by it.
template <DepthwiseRowsShape shape>
struct DepthwiseRowsMap {
  static constexpr bool transposed = shape.transposed, unrolled = shape.unrolled;
  static constexpr int live_groups = shape.live_groups(), columns_before = shape.columns_before();
  static constexpr int row_step = shape.row_step, column_step = shape.column_step;

  // The index, below live_groups, of the registers of the group that began `age` steps before step `step` mod
  // live_groups.
  static COSMATI_CONSTEXPR int place(int step, int age) {
    return unrolled ? (step - age + live_groups) % live_groups : age;
  }
  // The tap through which row `in` of a step contributes to row `out` of the group that began `age` steps
  // earlier; values of row_taps and above mean that there is none.
  static COSMATI_CONSTEXPR int row_tap(int age, int in, int out) {
    return transposed ? out + (live_groups - 1 - age) * row_step : in + age * row_step;
  }
  // The column of the image that tap s multiplies for column `out` of the run; -1 if there is none.
  static COSMATI_CONSTEXPR int column_of(int out, int s) {
    if (!transposed) return out * column_step + s;
    int const at = out - s + columns_before * column_step;
    return at % column_step == 0 ? at / column_step : -1;
  }
};

}  // namespace cosmati
