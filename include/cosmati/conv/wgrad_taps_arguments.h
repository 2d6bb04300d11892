// Launch parameters of wgrad_taps and of the kernel that adds its partial sums.
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/conv/wgrad_taps_shape.h"
#include "cosmati/core/divisor.h"
#include "cosmati/core/shape.h"

namespace cosmati {

// The first of the weights whose sums a block keeps.
struct WgradTapsTile {
  int filter, channel, row, column;  // row and column: of the tap
};
// All tiles: (filters, channels of the filters' groups, rows of taps, columns of taps). Where filters of a
// tile are of several groups, most of its sums mix groups; those are not stored.
struct WgradTapsTiles {
  Divisor channels, rows, columns;        // numbers of tiles
  Divisor group_filters, group_channels;  // per group
  int taps_down = 1, taps_across = 1;     // of a tile
  // Boxes of x begin at multiples of 16 bytes.
  template <class Number>
  COSMATI_CONSTEXPR static Number first_channel(Number of_group) {
    return of_group / 8 * 8;
  }
  COSMATI_CONSTEXPR WgradTapsTile tile(int index) const {
    int const above_columns = columns.quotient(index), above_rows = rows.quotient(above_columns),
              filters = channels.quotient(above_rows), filter = filters * wgrad_taps_channels;
    return {filter,
            first_channel(group_filters.quotient(filter) * group_channels.divisor) +
                (above_rows - filters * channels.divisor) * wgrad_taps_channels,
            (above_columns - above_rows * rows.divisor) * taps_down,
            (index - above_columns * columns.divisor) * taps_across};
  }
};

// With h = p * stride + r * dilation + top and w = q * stride + s * dilation + left, a step covers `across`
// columns of a chunk, `down` rows of a band, and `images` images.
struct WgradTapsParameters {
  arch::TensorMap gradient;  // boxes of dy: (filters, columns, rows, images)
  arch::TensorMap image[2];  // boxes of each phase of x: (channels, columns, rows, images)

  // [part][tile][column of taps][run of 4 sums][thread]: in the order in which the threads of a warpgroup
  // hold them.
  float* partials = nullptr;
  int top = 0, left = 0;
  int outputs_down = 0;
  // A row of a chunk of dy ends with `lead` zeros. The first `leading_taps` columns of taps instead read the
  // zeros at the end of the previous row.
  int lead = 0, leading_taps = 0;
  int steps = 0, parts = 1;
  Divisor chunks, bands;  // for decomposing a step
  Divisor tile_count;     // for decomposing a block's index
  WgradTapsTiles tiles;
};

// Compile-time choices of the kernel that adds the partial sums.
struct WgradTapsSumPolicy {
  int slices = 1;        // threads that each add a share of the parts
  bool in_runs = false;  // channels are contiguous in the result
  bool swapped = false;  // n of the result is the filter
};

template <class Epilogue, class Destination>
struct WgradTapsSumParameters {
  float const* partials = nullptr;
  int parts = 1;
  Index part_stride = 0;          // elements
  Divisor runs_of_group, groups;  // a group is the sums of a warpgroup; a tile has `groups` groups
  WgradTapsTiles tiles;
  int filters = 0, taps_down = 1, taps_across = 1;  // filters: of all groups
  // Increments of the result's index n per channel, row and column of taps.
  int channel_number = 0, tap_row_number = 0, tap_column_number = 0;
  Epilogue epilogue;
  Destination d;
};

}  // namespace cosmati
