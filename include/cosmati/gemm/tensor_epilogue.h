// Stores registers to D by TMA: each warp applies the epilogue in registers, writes the values to its own
// swizzled buffer, and TMA stores it asynchronously.
#pragma once
#include "cosmati/gemm/epilogue_schedule.h"
#include "cosmati/gemm/tensor_source.h"
#include "cosmati/tile/tensor_tile.h"

namespace cosmati {

// The bytes of the stages, which limit the buffers of the epilogue; the slices of a cluster along k are
// stored one box at a time, as if the stages left no room.
template <class Traits>
COSMATI_CONSTEXPR int bytes_of_stages() {
  if constexpr (Traits::policy.cluster_k > 1)
    return 228 * 1024;
  else
    return Traits::policy.stages *
           static_cast<int>(sizeof(typename Traits::TileA) + sizeof(typename Traits::TileB));
}

template <class Traits, class Epilogue, class Element, Along along, class Maps>
struct EpilogueScheduleOf<EpilogueSchedule::direct, Traits, Epilogue,
                          TensorDestination<Element, along, Maps>> {
  using Real = typename Epilogue::Real;
  using Sums = typename Traits::Product;
  using Tile = typename Epilogue::Tile;
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr int element_bytes = static_cast<int>(sizeof(Element));
  static constexpr int stage_bytes = bytes_of_stages<Traits>();
  static constexpr int warps = policy.consumer_warps(), rows = tensor_store_rows;
  static constexpr TensorStore store =
      tensor_store(policy.warp_m, policy.warp_n, warps, element_bytes, stage_bytes, policy.blocks);
  static constexpr int columns = store.columns, boxes_n = store.boxes_n, buffers = store.buffers;
  // A box in its buffer: rows of D, or columns if D is M-major.
  static constexpr int row_bytes = (along == Along::k ? columns : rows) * element_bytes;
  static_assert(row_bytes >= 32, "a TMA store requires at least 32 contiguous bytes of a warp's part of D");
  struct SharedStorage {
    alignas(1024) unsigned char bytes[warps][buffers][rows * columns * element_bytes];
  };

  // The offset of element (m, n) of a box in its buffer. If D is M-major, lanes that all began with the first
  // of their two columns would use only half of the banks; every other lane therefore begins with its second
  // column.
  COSMATI_CONSTEXPR static int offset(int m, int n) {
    return along == Along::k ? tensor_store_offset(m, n, columns, element_bytes)
                             : tensor_store_offset(n, m, rows, element_bytes);
  }
  COSMATI_CONSTEXPR static int first_column(int n) { return n / 2 % 2; }

  COSMATI_DEVICE static void run(Sums const& sums, SharedStorage& shared,
                                 typename Epilogue::Arguments const& arguments, Maps const& d,
                                 TileOfResult const& at) {
    // Without operands nothing is read beyond the edge, and TMA does not write there.
    constexpr bool reads_nothing = is_same<Epilogue, IdentityEpilogue<Real>>;
    if (policy.full_tiles || reads_nothing || (at.rows >= policy.block_m && at.columns >= policy.block_n))
      store_tile<true>(sums, shared, arguments, d, at);
    else
      store_tile<false>(sums, shared, arguments, d, at);
  }

  // The issuing thread waits until TMA has read the buffers.
  COSMATI_DEVICE static void finish() {
    if (arch::thread() % 32 == 0) arch::wait_stores_read<0>();
  }

 private:
  using Pair = Vector<Element, 2>;

  template <bool whole>
  COSMATI_DEVICE static void store_tile(Sums const& sums, SharedStorage& shared,
                                        typename Epilogue::Arguments const& arguments, Maps const& d,
                                        TileOfResult const& at) {
    int const warp = arch::uniform(arch::thread() / 32), lane = arch::thread() % 32;
    ThreadPlace const place = Traits::place(warp * 32 + lane);
    constexpr auto partition_m = Traits::partition_m;
    int const warp_m = partition_m.position(place.warp_m, 0, 0), own_m = place.lane_m;
    int const warp_n = place.warp_n * policy.warp_n, own_n = place.lane_n * 2;
    Index const first_m = at.first_m + warp_m, first_n = at.first_n + warp_n;
    Tile const tile(arguments, at.batch, first_m + own_m, first_n + own_n);
    int const rows_left = at.rows - warp_m - own_m, columns_left = at.columns - warp_n - own_n;
    int const to_m = static_cast<int>(first_m), to_n = static_cast<int>(first_n);
    MapUse<Maps> map_of;
    auto const place_of_d = d.coordinates(at.batch);
    COSMATI_UNROLL
    for (int box = 0; box < store.boxes; ++box) {
      Pair value[columns / 8][2];  // computed before any store, so that operands are loaded together
      COSMATI_UNROLL
      for (int j = 0; j < columns / 8; ++j) {
        COSMATI_UNROLL
        for (int i = 0; i < 2; ++i)
          value[j][i] = evaluate<whole>(sums, tile, box / boxes_n * 2 + i, box % boxes_n * columns + j * 8,
                                        rows_left, columns_left);
      }
      if (box % buffers == 0) {
        if (lane == 0) arch::wait_stores_read<0>();
        arch::warp_barrier();
      }
      unsigned char* const buffer = shared.bytes[warp][box % buffers];
      COSMATI_UNROLL
      for (int j = 0; j < columns / 8; ++j) {
        COSMATI_UNROLL
        for (int i = 0; i < 2; ++i) store_pair(buffer, own_m + i * 8, j * 8 + own_n, value[j][i]);
      }
      if ((box + 1) % buffers != 0) continue;
      arch::publish_to_async();
      arch::warp_barrier();
      if (lane != 0) continue;
      arch::TensorMap const& map = map_of(d, at.batch);
      COSMATI_UNROLL
      for (int b = 0; b < buffers; ++b) {
        int const stored = box + 1 - buffers + b;
        int const m = to_m + stored / boxes_n * 64, n = to_n + stored % boxes_n * columns;
        store_box<along>(map, shared.bytes[warp][b], place_of_d, m, n);
      }
      arch::commit_stores();
    }
  }

  // Stores row m, columns n and n + 1 of a box.
  COSMATI_DEVICE static void store_pair(unsigned char* buffer, int m, int n, Pair const& value) {
    if constexpr (along == Along::k) {
      arch::store(buffer + offset(m, n), value);
    } else {
      int const first = first_column(n);
      Element const one = first != 0 ? value[1] : value[0], other = first != 0 ? value[0] : value[1];
      arch::store(buffer + offset(m, n + first), one);
      arch::store(buffer + offset(m, n + 1 - first), other);
    }
  }

  // Returns the results of row i, columns n and n + 1, relative to this thread's first.
  template <bool whole>
  COSMATI_DEVICE static Pair evaluate(Sums const& sums, Tile const& tile, int i, int n, int rows_left,
                                      int columns_left) {
    Real value[2] = {arch::number_cast<Real>(sums.get(i, n / 4)),
                     arch::number_cast<Real>(sums.get(i, n / 4 + 1))};
    constexpr auto partition_m = Traits::partition_m;
    int const m = partition_m.position(0, 0, i);
    if constexpr (whole) {
      Epilogue::apply(tile, m, n, 2, value);
    } else {
      COSMATI_UNROLL
      for (int e = 0; e < 2; ++e) {  // element by element: predicated runs would double the code
        Real one[1] = {value[e]};
        if (m < rows_left && n + e < columns_left) Epilogue::apply(tile, m, n + e, 1, one);
        value[e] = one[0];
      }
    }
    return {{arch::number_cast<Element>(value[0]), arch::number_cast<Element>(value[1])}};
  }
};

}  // namespace cosmati
