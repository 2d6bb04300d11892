// The second kernel of wgrad_small_c: adds the blocks' sums in a fixed order, and writes the filter gradient
// and the bias gradient.
#pragma once
#include "cosmati/conv/small_c/wgrad_small_c.h"

namespace cosmati {

// Grid: ceil(sums of a block's place in all bands / SumStorage::lanes); block: sum_threads; dynamic shared
// memory: SumStorage.
template <class Traits>
COSMATI_KERNEL(Traits::sum_threads, 2)
wgrad_small_c_sum_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  constexpr int columns = Traits::columns;
  WgradSmallCArguments const& all = params.all;
  WgradSmallCShape const of = Traits::shape(all);
  auto& shared = arch::shared_storage<typename Traits::SumStorage>();
  int const bands = (all.window.filters + Traits::filters - 1) / Traits::filters;
  int const index = arch::block_x() * shared.lanes + shared.lane(),
            count = bands * all.tap_bands * Traits::filters * columns;
  bool const exists = index < count;
  float const sum =
      shared.total(arch::as_global(static_cast<float const*>(all.partials)) + (exists ? index : 0), exists,
                   count, all.blocks);
  if (!shared.is_first() || !exists) return;
  int const above = index / columns, column = index - above * columns;
  int const band = above / Traits::filters, of_filters = band / all.tap_bands,
            of_taps = band - of_filters * all.tap_bands;
  int const filter = of_filters * Traits::filters + above - band * Traits::filters;
  int const tile = column / 8, line = tile / of.tiles_of_row();
  int const place = (tile - line * of.tiles_of_row()) * 8 + column % 8;
  int const row = of_taps * of.tile.rows.taps + line, tap = place / Traits::place,
            channel = place % Traits::place;
  if (filter >= all.window.filters) return;
  if (tile == Traits::tiles) {
    if (column % 8 == 0 && of_taps == 0 && all.bias != nullptr) all.bias[filter * all.bias_stride] = sum;
    return;
  }
  if (line >= of.tile.rows.taps || row >= all.tap_rows || tap >= all.tap_columns ||
      channel >= of.tile.channels)
    return;
  int const result = channel * all.channel_number + row * all.tap_row_number + tap * all.tap_column_number;
  store_weight<Traits>(params, Traits::swapped, 0, filter, result, sum);
}

}  // namespace cosmati
