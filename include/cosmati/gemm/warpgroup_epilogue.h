// Staged epilogue of a warpgroup: each warp passes 16 rows of 128 bytes of sums at a time through shared
// memory, then processes runs of a row in a rolled loop, which contains the expression for at least four
// elements.
#pragma once
#include "cosmati/gemm/epilogue_schedule.h"
#include "cosmati/gemm/warpgroup_product.h"

namespace cosmati {

template <GemmPolicy policy, class SourceA, class SourceB, class Sum, class Epilogue, class Destination>
struct EpilogueScheduleOf<EpilogueSchedule::staged, WarpgroupProduct<policy, SourceA, SourceB, Sum>, Epilogue,
                          Destination> {
  using Traits = WarpgroupProduct<policy, SourceA, SourceB, Sum>;
  using Real = typename Epilogue::Real;
  static constexpr int real_bytes = static_cast<int>(sizeof(Real));
  static constexpr int rows = 16, columns = part_of_row(policy.warp_n, real_bytes);  // of a pass
  static constexpr int pitch = columns + 32 / real_bytes;  // rows begin 8 banks apart
  static constexpr int passes_n = policy.warp_n / columns, passes = policy.warp_m / rows * passes_n;
  // Adjacent lanes process adjacent runs of `count` columns of a row, as many as a store takes, or, if D is
  // M-major, adjacent rows. A warp's next step is rows_of_step rows and columns_of_step columns further.
  static constexpr bool down = lies_along_m<Destination>();
  static constexpr int count =
      down ? 1 : vector_within(columns, imin(imax(Destination::width, columns / 32), rows* columns / 32));
  static constexpr int lanes_n = down ? 32 / rows : columns / count, lanes_m = 32 / lanes_n;
  static constexpr int rows_of_step = down ? 0 : lanes_m, columns_of_step = down ? lanes_n : 0;
  static constexpr int steps = rows * columns / count / 32, at_once = imax(1, 4 / count);
  static_assert(steps > 0 && steps % at_once == 0);
  struct SharedStorage {
    alignas(16) Real value[policy.consumer_warps()][rows][pitch];
  };

  COSMATI_DEVICE static void run(typename Traits::Product const& sums, SharedStorage& shared,
                                 typename Epilogue::Arguments const& arguments,
                                 typename Destination::Arguments const& destination, TileOfResult const& at) {
    constexpr auto partition_m = Traits::partition_m;
    int const warp = arch::uniform(arch::thread() / 32), lane = arch::thread() % 32;
    ThreadPlace const place = Traits::place(warp * 32 + lane);
    int const warp_m = partition_m.position(place.warp_m, 0, 0), warp_n = place.warp_n * policy.warp_n;
    typename Epilogue::Tile const tile(arguments, at.batch, at.first_m + warp_m, at.first_n + warp_n);
    typename Destination::Tile const d(destination, at.batch, at.first_m + warp_m, at.first_n + warp_n);
    auto& value = shared.value[warp];  // (rows, columns)
    int const lane_m = down ? lane % rows : lane / lanes_n,
              lane_n = down ? lane / rows : lane % lanes_n * count;
    COSMATI_NO_UNROLL
    for (int pass = 0; pass < passes; ++pass) {
      arch::warp_barrier();  // the previous pass has been read
      COSMATI_UNROLL
      for (int p = 0; p < passes; ++p)
        if (p == pass) stage(value, sums, place, p / passes_n * 2, p % passes_n * columns / 4);
      arch::warp_barrier();
      int const first_m = partition_m.position(0, 0, pass / passes_n * 2),
                first_n = pass % passes_n * columns;
      COSMATI_NO_UNROLL
      for (int step = 0; step < steps; step += at_once) {
        int const row = lane_m + step * rows_of_step, column = lane_n + step * columns_of_step;
        Real run[at_once][count];
        COSMATI_UNROLL
        for (int i = 0; i < at_once; ++i) {
          COSMATI_UNROLL
          for (int e = 0; e < count; ++e)
            run[i][e] = value[row + i * rows_of_step][column + i * columns_of_step + e];
        }
        // The loads of all runs are issued before the first is stored.
        int valid[at_once];
        COSMATI_UNROLL
        for (int i = 0; i < at_once; ++i) {
          int const m = first_m + row + i * rows_of_step, n = first_n + column + i * columns_of_step;
          valid[i] = policy.full_tiles      ? count
                     : m < at.rows - warp_m ? imax(imin(at.columns - warp_n - n, count), 0)
                                            : 0;
          Epilogue::apply(tile, m, n, valid[i], run[i]);
        }
        COSMATI_UNROLL
        for (int i = 0; i < at_once; ++i)
          d.store(first_m + row + i * rows_of_step, first_n + column + i * columns_of_step, valid[i], run[i]);
      }
    }
  }

 private:
  // Stores rows i and i + 1 of this thread, starting at its column j.
  COSMATI_DEVICE static void stage(Real (&value)[rows][pitch], typename Traits::Product const& sums,
                                   ThreadPlace const& place, int i, int j) {
    COSMATI_UNROLL
    for (int column = 0; column < columns / 4; column += 2) {
      COSMATI_UNROLL
      for (int row = 0; row < 2; ++row) {
        Vector<Real, 2> const pair{{arch::number_cast<Real>(sums.get(i + row, j + column)),
                                    arch::number_cast<Real>(sums.get(i + row, j + column + 1))}};
        arch::store(&value[place.lane_m + row * 8][column * 4 + place.lane_n * 2], pair);
      }
    }
  }
};

}  // namespace cosmati
