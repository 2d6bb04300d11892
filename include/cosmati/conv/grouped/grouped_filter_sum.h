// The second kernel of a filter gradient with groups of few channels: adds the sums of the blocks.
#pragma once
#include "cosmati/conv/grouped/grouped_filter.h"

namespace cosmati {

// Adds the parts: a block computes threads / slices results. Grid: ceil(weights / results).
template <class Traits>
COSMATI_KERNEL(Traits::threads, 4)
grouped_filter_sum_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  constexpr int slices = Traits::slices, results = Traits::threads / slices, together = 4;
  struct Storage {
    float sum[slices][results];
  };
  GroupedFilterShape const shape = Traits::shape(params);
  auto& shared = arch::shared_storage<Storage>();
  int const lane = arch::thread() % results, slice = arch::thread() / results,
            index = arch::block_x() * results + lane;
  float sum = 0;
  if (index < params.weights) {
    float const* const from = arch::as_global(params.partials) + index;
    for (int first = slice; first < params.sums; first += slices * together) {
      float value[together];
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const at = first + i * slices;
        value[i] = at < params.sums ? from[Index{at} * params.weights] : 0;
      }
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) sum += value[i];
    }
  }
  shared.sum[slice][lane] = sum;
  arch::block_barrier();
  if (slice > 0 || index >= params.weights) return;
  COSMATI_UNROLL
  for (int i = 1; i < slices; ++i) sum += shared.sum[i][lane];
  int const above = index / shape.inputs, channel = index - above * shape.inputs, all = above / shape.taps(),
            tap = above - all * shape.taps(), row = tap / shape.columns.taps,
            column = tap - row * shape.columns.taps;
  int const group = all / shape.outputs, filter = all - group * shape.outputs;
  int const number =
      channel * params.channel_number + row * params.tap_row_number + column * params.tap_column_number;
  store_weight<Traits>(params, params.swapped, group, filter, number, sum);
}

}  // namespace cosmati
