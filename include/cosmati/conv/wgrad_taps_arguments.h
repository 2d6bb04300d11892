// Launch parameters of wgrad_taps and of the kernel that adds its partial sums.
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/conv/wgrad_taps_shape.h"
#include "cosmati/core/divisor.h"
#include "cosmati/core/shape.h"

namespace cosmati {

// The weights whose sums a block keeps, from these on.
struct WgradTapsTile {
  int filter, channel, row, column;  // the latter two: of taps
};
// All tiles: (filters, channels, rows of taps, columns of taps).
struct WgradTapsTiles {
  Divisor channels, rows, columns;     // numbers of tiles
  int taps_down = 1, taps_across = 1;  // of a tile
  COSMATI_CONSTEXPR WgradTapsTile tile(int index) const {
    int const above_columns = columns.quotient(index), above_rows = rows.quotient(above_columns),
              filter = channels.quotient(above_rows);
    return {filter * wgrad_taps_channels, (above_rows - filter * channels.divisor) * wgrad_taps_channels,
            (above_columns - above_rows * rows.divisor) * taps_down,
            (index - above_columns * columns.divisor) * taps_across};
  }
};

// With h = p * stride + r * dilation + top and w = q * stride + s * dilation + left, a step covers `across`
// columns of a chunk, `down` rows of a band, and `images` images.
struct WgradTapsParameters {
  arch::TensorMap gradient;  // boxes of dy: (filters, columns, rows, images)
  arch::TensorMap image[2];  // of each phase of x: (channels, columns, rows, images)
  // [part][tile][column of taps][run of 4 sums][thread]: as the threads of a warpgroup have them.
  float* partials = nullptr;
  int top = 0, left = 0;
  int outputs_down = 0;
  // dy's row of a chunk ends with `lead` zeros. The first `leading_taps` columns of taps read the zeros at
  // the end of the row before instead.
  int lead = 0, leading_taps = 0;
  int steps = 0, parts = 1;
  Divisor chunks, bands;  // of a step
  Divisor tile_count;     // of a block
  WgradTapsTiles tiles;
};

template <class Epilogue, class Destination>
struct WgradTapsSumParameters {
  float const* partials = nullptr;
  int parts = 1;
  Index part_stride = 0;          // elements
  Divisor runs_of_group, groups;  // a group has the sums of a warpgroup, a tile has `groups`
  WgradTapsTiles tiles;
  int filters = 0, channels = 0, taps_down = 1, taps_across = 1;  // of the filter
  // The result's index n of (r, s, channel).
  int channel_number = 0, tap_row_number = 0, tap_column_number = 0;
  Epilogue epilogue;
  Destination d;
};

}  // namespace cosmati
