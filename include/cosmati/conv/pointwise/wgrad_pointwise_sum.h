// The second kernel of wgrad_pointwise: adds the blocks' sums in a fixed order, and writes the filter
// gradient.
#pragma once
#include "cosmati/conv/pointwise/wgrad_pointwise.h"

namespace cosmati {

// Grid: ceil(sums of all bands / SumStorage::lanes); block: sum_threads; dynamic shared memory: SumStorage.
template <class Traits>
COSMATI_KERNEL(Traits::sum_threads, 4)
wgrad_pointwise_sum_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  WgradPointwiseArguments const& all = params.all;
  WgradPointwiseShape const shape = Traits::shape(all);
  auto& shared = arch::shared_storage<typename Traits::SumStorage>();
  constexpr int area = Traits::block_rows * Traits::block_columns;
  int const index = arch::block_x() * shared.lanes + shared.lane();
  int const band = index / area, place = index - band * area, row_band = band / all.column_bands;
  int const row = row_band * Traits::block_rows + place / Traits::block_columns;
  int const column =
      (band - row_band * all.column_bands) * Traits::block_columns + place % Traits::block_columns;
  bool const exists = row < shape.rows.channels && column < shape.columns.channels;
  if constexpr (Traits::early) {
    arch::let_next_kernel_start();
    arch::wait_for_previous_kernel();
  }
  float const sum =
      shared.total(arch::as_global(static_cast<float const*>(all.partials)) + (exists ? index : 0), exists,
                   Index{area} * all.row_bands * all.column_bands, all.blocks);
  if (!shared.is_first() || !exists) return;
  int const filter = all.rows_are_filters ? row : column, channel = all.rows_are_filters ? column : row;
  int const number = channel * all.channel_number;
  store_weight<Traits>(params, Traits::swapped, 0, filter, number, sum);
}

}  // namespace cosmati
