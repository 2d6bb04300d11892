// Stores the sums of one phase: the staged schedule of warpgroup_epilogue.h, except that a thread loads the
// operands of all its runs before it stores the first, so that their latencies overlap.
#pragma once
#include "cosmati/gemm/warpgroup_epilogue.h"

namespace cosmati {

template <class Traits>
struct PhaseEpilogue {
  using ToDestination = typename Traits::ToDestination;
  using Epilogue = typename Traits::Epilogue;
  using Destination = typename Traits::Destination;
  using Params = typename Traits::Params;
  using Shared = typename ToDestination::SharedStorage;
  using Sums = typename Traits::Product;
  static constexpr GemmPolicy policy = Traits::policy;

  COSMATI_DEVICE static void run(Sums const& sums, Shared& shared, Params const& params,
                                 TileOfResult const& at) {
    if constexpr (policy.epilogue == EpilogueSchedule::staged)
      run_staged(sums, shared, params, at);
    else
      ToDestination::run(sums, shared, params.epilogue, params.d, at);
  }

  // Prefetches the epilogue's matrix operands of the warp's rows into the L2 cache, but no vectors.
  COSMATI_DEVICE static void prefetch(Params const& params, TileOfResult const& at) {
    if constexpr (requires { Epilogue::operands; }) {
      constexpr auto partition_m = Traits::partition_m;
      int const m = partition_m.position(Traits::place(arch::thread()).warp_m, 0, 0);
      Epilogue::template prefetch<policy.warp_m, policy.warp_n>(
          params.epilogue, at.batch, at.first_m + m, at.first_n, arch::thread() % 32,
          [](int row) { return row; }, at.rows - m, at.columns);
    }
  }

 private:
  COSMATI_DEVICE static void run_staged(Sums const& sums, Shared& shared, Params const& params,
                                        TileOfResult const& at) {
    using Real = typename Epilogue::Real;
    constexpr int rows = ToDestination::rows, columns = ToDestination::columns, count = ToDestination::count;
    constexpr int items = (rows * columns / count + 31) / 32;  // runs of a thread
    constexpr bool down = ToDestination::down;
    int const warp = arch::uniform(arch::thread() / 32), lane = arch::thread() % 32;
    ThreadPlace const place = Traits::place(warp * 32 + lane);
    constexpr auto partition_m = Traits::partition_m;
    int const warp_m = partition_m.position(place.warp_m, 0, 0);
    typename Epilogue::Tile const tile(params.epilogue, at.batch, at.first_m + warp_m, at.first_n);
    typename Destination::Tile const d(params.d, at.batch, at.first_m + warp_m, at.first_n);
    auto& value = shared.value[warp];  // (rows, columns)
    COSMATI_UNROLL
    for (int pass = 0; pass < ToDestination::passes; ++pass) {
      arch::warp_barrier();  // the previous pass has been read
      COSMATI_UNROLL
      for (int j = 0; j < columns / 4; j += 2) {
        COSMATI_UNROLL
        for (int i = 0; i < 2; ++i) {
          int const of_pass = pass * columns / 4 + j;
          Vector<Real, 2> const pair{{arch::number_cast<Real>(sums.get(i, of_pass)),
                                      arch::number_cast<Real>(sums.get(i, of_pass + 1))}};
          arch::store(&value[place.lane_m + i * 8][j * 4 + place.lane_n * 2], pair);
        }
      }
      arch::warp_barrier();
      Real run[items][count];
      int valid[items];  // 0: no run, or beyond the result
      COSMATI_UNROLL
      for (int i = 0; i < items; ++i) {
        Item const item = item_of<down, count, columns>(lane + i * 32);
        int const n = pass * columns + item.column;
        bool const exists = lane + i * 32 < rows * columns / count;
        valid[i] = !exists                       ? 0
                   : policy.full_tiles           ? count
                   : item.row < at.rows - warp_m ? imin(at.columns - n, count)
                                                 : 0;
        if (valid[i] <= 0) continue;
        COSMATI_UNROLL
        for (int e = 0; e < count; ++e) run[i][e] = value[item.row][item.column + e];
        Epilogue::apply(tile, item.row, n, valid[i], run[i]);
      }
      COSMATI_UNROLL
      for (int i = 0; i < items; ++i) {
        Item const item = item_of<down, count, columns>(lane + i * 32);
        if (valid[i] > 0) d.store(item.row, pass * columns + item.column, valid[i], run[i]);
      }
    }
  }

  struct Item {
    int row, column;
  };
  // Items are numbered along the rows or, if `down`, down the columns.
  template <bool down, int count, int columns>
  COSMATI_DEVICE static Item item_of(int number) {
    if (down) return {number % ToDestination::rows, number / ToDestination::rows};
    return {number / (columns / count), number % (columns / count) * count};
  }
};

}  // namespace cosmati
