// The two schedules for storing accumulators to D.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/epilogue.h"
#include "cosmati/gemm/traits.h"

namespace cosmati {

// The part of D that a tile covers: its first element and how many rows and columns exist.
struct TileOfResult {
  Index batch, first_m, first_n;
  int rows, columns;
};

template <EpilogueSchedule schedule, class Traits, class Epilogue, class Destination>
struct EpilogueScheduleOf {
  static_assert(!is_same<Traits, Traits>, "unknown epilogue schedule; valid values: direct, staged");
};

// Direct schedule: each thread applies the epilogue to its accumulators in registers and stores them.
template <class Traits, class Epilogue, class Destination>
struct EpilogueScheduleOf<EpilogueSchedule::direct, Traits, Epilogue, Destination> {
  using Requirements = required::EpilogueOfWmma<Traits::policy.multiply == Multiply::wmma>;
  static_assert(sizeof(Requirements) > 0);
  struct SharedStorage {};
  using Real = typename Epilogue::Real;

  COSMATI_DEVICE static void run(typename Traits::Product const& sums, SharedStorage&,
                                 typename Epilogue::Arguments const& arguments,
                                 typename Destination::Arguments const& destination, TileOfResult const& at) {
    constexpr GemmPolicy policy = Traits::policy;
    constexpr auto partition_m = Traits::partition_m;
    constexpr LinePartition partition_n = Traits::partition_n;
    constexpr int count = partition_n.vector;
    // Positions are relative to the thread's first element, so they are constants.
    // In tiny, each warp of a block has a tile of its own.
    int const thread = policy.matrices > 1 ? arch::thread() % policy.team() : arch::thread();
    ThreadPlace const place = Traits::place(thread);
    int const own_m = partition_m.position(place.warp_m, place.lane_m, 0);
    int const own_n = partition_n.position(place.warp_n, place.lane_n, 0);
    typename Epilogue::Tile const tile(arguments, at.batch, at.first_m + own_m, at.first_n + own_n);
    typename Destination::Tile const d(destination, at.batch, at.first_m + own_m, at.first_n + own_n);
    COSMATI_UNROLL
    for (int i = 0; i < policy.thread_m; ++i) {
      int const m = partition_m.position(0, 0, i);
      COSMATI_UNROLL
      for (int j = 0; j < policy.thread_n; j += count) {
        int const n = partition_n.position(0, 0, j);
        int const valid = policy.full_tiles     ? count
                          : m < at.rows - own_m ? imin(at.columns - own_n - n, count)
                                                : 0;
        if (!policy.full_tiles && valid <= 0) continue;
        Real value[count];
        COSMATI_UNROLL
        for (int e = 0; e < count; ++e) value[e] = arch::number_cast<Real>(sums.get(i, j + e));
        Epilogue::apply(tile, m, n, valid, value);
        d.store(m, n, valid, value);
      }
    }
  }
};

// Processes rows in shared memory with all threads of the block; row r corresponds to row row_of(r) of the
// tile. The loop is rolled, so that the expression appears in the code once.
template <GemmPolicy policy, class Epilogue, class Destination, class Value, int rows, int pitch, class RowOf>
COSMATI_DEVICE void store_staged_rows(Value const (&staged)[rows][pitch], typename Epilogue::Tile const& tile,
                                      typename Destination::Tile const& d, TileOfResult const& at,
                                      RowOf const& row_of) {
  using Real = typename Epilogue::Real;
  // Columns per thread and iteration; they divide the row for every tile. If elements are stored one by one,
  // those of adjacent lanes are adjacent.
  constexpr int count =
      Destination::width == 1 ? 1 : vector_within(policy.block_n, imax(Destination::width, 4));
  constexpr int runs = policy.block_n / count;
  // If a thread has the same columns in all its rows, their addresses are computed once.
  constexpr bool same_columns = policy.threads() % runs == 0;
  int const own_n = arch::thread() % runs * count;
  COSMATI_NO_UNROLL
  for (int item = arch::thread(); item < rows * runs; item += policy.threads()) {
    int const row = item / runs, n = same_columns ? own_n : item % runs * count;
    int const m = row_of(row);
    int const valid = policy.full_tiles ? count : m < at.rows ? imin(at.columns - n, count) : 0;
    if (valid <= 0) continue;
    Real value[count];
    COSMATI_UNROLL
    for (int e = 0; e < count; ++e) value[e] = arch::number_cast<Real>(staged[row][n + e]);
    Epilogue::apply(tile, m, n, valid, value);
    d.store(m, n, valid, value);
  }
}

// Staged schedule: one row of every thread at a time passes through shared memory.
template <class Traits, class Epilogue, class Destination>
struct EpilogueScheduleOf<EpilogueSchedule::staged, Traits, Epilogue, Destination> {
  using Real = typename Epilogue::Real;
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr int rows = policy.warps_m() * policy.lanes_m();  // rows of D in shared memory at a time
  static constexpr int pitch = policy.block_n + 16 / static_cast<int>(sizeof(Real));
  struct SharedStorage {
    alignas(16) Real value[rows][pitch];
  };

  COSMATI_DEVICE static void run(typename Traits::Product const& sums, SharedStorage& shared,
                                 typename Epilogue::Arguments const& arguments,
                                 typename Destination::Arguments const& destination, TileOfResult const& at) {
    constexpr LinePartition partition_m = Traits::partition_m, partition_n = Traits::partition_n;
    int const thread = arch::thread();
    ThreadPlace const place = Traits::place(thread);
    typename Epilogue::Tile const tile(arguments, at.batch, at.first_m, at.first_n);
    typename Destination::Tile const d(destination, at.batch, at.first_m, at.first_n);
    COSMATI_NO_UNROLL
    for (int pass = 0; pass < policy.thread_m; ++pass) {
      arch::block_barrier();  // the main loop or the previous pass has finished reading
      COSMATI_UNROLL
      for (int i = 0; i < policy.thread_m; ++i)
        if (i == pass) COSMATI_UNROLL
      for (int j = 0; j < policy.thread_n; ++j)
        shared.value[place.warp_m * policy.lanes_m() + place.lane_m][partition_n.position(
            place.warp_n, place.lane_n, j)] = arch::number_cast<Real>(sums.get(i, j));
      arch::block_barrier();
      store_staged_rows<policy, Epilogue, Destination>(shared.value, tile, d, at, [&](int row) {
        return partition_m.position(row / policy.lanes_m(), row % policy.lanes_m(), pass);
      });
    }
  }
};

}  // namespace cosmati
