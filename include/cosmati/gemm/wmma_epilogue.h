// Stores WMMA fragments to D: their element layout is unspecified, so the instruction stores them to shared
// memory, one row of fragments of every warp at a time.
#pragma once
#include "cosmati/gemm/epilogue_schedule.h"

namespace cosmati {

template <class Traits, class Epilogue, class Destination>
requires(Traits::policy.multiply ==
         Multiply::wmma) struct EpilogueScheduleOf<EpilogueSchedule::staged, Traits, Epilogue, Destination> {
  using Product = typename Traits::Product;
  using Sum = typename Product::Sum;
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr int rows_of_fragment = Product::shape.m;
  static constexpr int rows = policy.warps_m() * rows_of_fragment;  // of D, in shared memory at a time
  static constexpr int pitch = padded_sums(policy.block_n);
  struct SharedStorage {
    alignas(32) Sum value[rows][pitch];
  };

  COSMATI_DEVICE static void run(Product const& sums, SharedStorage& shared,
                                 typename Epilogue::Arguments const& arguments,
                                 typename Destination::Arguments const& destination, TileOfResult const& at) {
    ThreadPlace const place = Traits::place(arch::thread());
    typename Epilogue::Tile const tile(arguments, at.batch, at.first_m, at.first_n);
    typename Destination::Tile const d(destination, at.batch, at.first_m, at.first_n);
    COSMATI_NO_UNROLL
    for (int pass = 0; pass < Product::rows; ++pass) {
      arch::block_barrier();  // the main loop or the previous pass has finished reading
      COSMATI_UNROLL
      for (int i = 0; i < Product::rows; ++i)
        if (i == pass)
          sums.template store_row<pitch>(
              i, &shared.value[place.warp_m * rows_of_fragment][place.warp_n * policy.warp_n]);
      arch::block_barrier();
      store_staged_rows<policy, Epilogue, Destination>(shared.value, tile, d, at, [&](int row) {
        return row / rows_of_fragment * policy.warp_m + pass * rows_of_fragment + row % rows_of_fragment;
      });
    }
  }
};

}  // namespace cosmati
