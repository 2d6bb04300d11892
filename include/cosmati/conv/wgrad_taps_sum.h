// Adds the partial sums of wgrad_taps.h in a fixed order, and stores the filter gradient.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/wgrad_taps_arguments.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

template <WgradTapsSumPolicy policy, class Epilogue_, class Destination_>
struct WgradTapsSumTraits {
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = WgradTapsSumParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr int slices = policy.slices, threads = 256, lanes = threads / slices;
  static constexpr bool in_runs = policy.in_runs, swapped = policy.swapped;
  static_assert(!(swapped && in_runs), "a run of results must be contiguous along n");
  struct SharedStorage {
    Vector<float, 4> sum[slices][lanes];
  };
};

template <class Traits>
struct WgradTapsSum {
  using Params = typename Traits::Params;
  using Run = Vector<float, 4>;
  using Pair = Vector<float, 2>;
  static constexpr int slices = Traits::slices;

  // A run of 4 channels; two threads of the product hold its sums, half of a run each. With t = thread % 4, g
  // = thread / 4 % 8 and w = thread / 32, a thread's run of 4 sums has columns 2 * t and 2 * t + 1 of 8, in
  // row 16 * w + g and in the row 8 below. Adjacent indices are adjacent channels, so that full sectors are
  // accessed.
  struct Place {
    int group, quarter, eight, below, row, warp, half;
    COSMATI_DEVICE Place(Params const& all, int index) {
      half = index & 1, eight = index >> 1 & 1, below = index >> 2 & 1, row = index >> 3 & 7;
      warp = index >> 6 & 3;
      int const above = index >> 8;  // (tile, group, 16 columns)
      group = all.runs_of_group.quotient(above);
      quarter = above - group * all.runs_of_group.divisor;
    }
    COSMATI_DEVICE Index offset(int index) const {
      return (Index{index >> 8} * 2 + eight) * 512 + warp * 128 + row * 16 + half * 8 + below * 2;
    }
    COSMATI_DEVICE int filter() const { return warp * 16 + below * 8 + row; }
    COSMATI_DEVICE int column() const { return quarter * 16 + eight * 8 + half * 4; }
  };

  // Adds every `slices`-th part starting at `slice`.
  COSMATI_DEVICE static Run sum(Params const& all, float const* from, int slice) {
    Run total{};
    constexpr int batch = 4;  // loads in flight
    COSMATI_NO_UNROLL
    for (int part = slice; part < all.parts; part += batch * slices) {
      Pair first[batch] = {}, second[batch] = {};
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) {
        if (part + u * slices >= all.parts) continue;
        float const* const at = from + (part + u * slices) * all.part_stride;
        first[u] = arch::load<Pair>(at), second[u] = arch::load<Pair>(at + 4);
      }
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) {
        total[0] += first[u][0], total[1] += first[u][1];
        total[2] += second[u][0], total[3] += second[u][1];
      }
    }
    return total;
  }

  // The weights of a run; filter and channel are those of the group.
  struct Weights {
    int group, filter, channel, row, column;
    bool exist;
    COSMATI_DEVICE Weights(Params const& all, Place const& place) {
      int const index = all.groups.quotient(place.group);
      WgradTapsTile const tile = all.tiles.tile(index);
      filter = tile.filter + place.filter(), channel = tile.channel + place.column() % wgrad_taps_channels;
      row = tile.row + place.column() / wgrad_taps_channels;
      column = tile.column + place.group - index * all.groups.divisor;
      group = all.tiles.group_filters.quotient(filter);
      exist = filter < all.filters && row < all.taps_down && column < all.taps_across &&
              group == all.tiles.group_channels.quotient(channel);
      filter -= group * all.tiles.group_filters.divisor;
      channel -= group * all.tiles.group_channels.divisor;
    }
  };

  COSMATI_DEVICE static void store(Params const& all, Weights const& weights, Run const& sum) {
    using Real = typename Traits::Epilogue::Real;
    int const left = all.tiles.group_channels.divisor - weights.channel, valid = left < 4 ? left : 4;
    constexpr int run = Traits::in_runs ? 4 : 1;
    COSMATI_UNROLL
    for (int first = 0; first < 4; first += run) {
      if (first >= valid) return;
      int const number = (weights.channel + first) * all.channel_number + weights.row * all.tap_row_number +
                         weights.column * all.tap_column_number;
      int const m = Traits::swapped ? number : weights.filter, n = Traits::swapped ? weights.filter : number;
      Real value[run];
      COSMATI_UNROLL
      for (int i = 0; i < run; ++i) value[i] = arch::number_cast<Real>(sum[first + i]);
      typename Traits::Epilogue::Tile const epilogue(all.epilogue, weights.group, m, n);
      Traits::Epilogue::apply(epilogue, 0, 0, valid - first, value);
      typename Traits::Destination::Tile const d(all.d, weights.group, m, n);
      d.store(0, 0, valid - first, value);
    }
  }
};

// Grid: ceil(runs / lanes); dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 4)
wgrad_taps_sum_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Sum = WgradTapsSum<Traits>;
  constexpr int slices = Traits::slices, lanes = Traits::lanes;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  arch::let_next_kernel_start();
  arch::wait_for_previous_kernel();
  int const lane = arch::thread() % lanes, slice = arch::thread() / lanes;
  int const index = arch::block_x() * lanes + lane;  // below runs, a multiple of lanes
  typename Sum::Place const place(params, index);
  typename Sum::Weights const weights(params, place);
  Vector<float, 4> sum{};
  if (weights.exist) sum = Sum::sum(params, arch::as_global(params.partials) + place.offset(index), slice);
  if constexpr (slices > 1) {
    shared.sum[slice][lane] = sum;
    arch::block_barrier();
    if (slice > 0) return;
    COSMATI_UNROLL
    for (int other = 1; other < slices; ++other) {
      COSMATI_UNROLL
      for (int i = 0; i < 4; ++i) sum[i] += shared.sum[other][lane][i];
    }
  }
  if (weights.exist) Sum::store(params, weights, sum);
}

}  // namespace cosmati
