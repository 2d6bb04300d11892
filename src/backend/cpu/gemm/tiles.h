// The result of a product divided into tiles, which threads take from a common counter, so that a delayed
// thread takes fewer.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>

#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {

// One tile of one matrix of the batch.
struct Tile {
  Index batch, row, column;
  Index rows, columns;
};

// A stack of (m, n) matrices in tiles of one size, with smaller ones in the last rows and columns.
struct TileGrid {
  Index batch, m, n;
  Index tile_m, tile_n;

  Index down() const { return (m + tile_m - 1) / tile_m; }
  Index across() const { return (n + tile_n - 1) / tile_n; }
  Index size() const { return batch * down() * across(); }
  // Tiles of the same column are consecutive, since they share columns of the right operand.
  Tile at(Index i) const {
    Index const row = i % down() * tile_m, column = i / down() % across() * tile_n;
    return {i / down() / across(), row, column, std::min(tile_m, m - row), std::min(tile_n, n - column)};
  }
};

// Tiles of at most `max_m` rows and about `wanted_n` columns, of nearly equal size.
inline TileGrid make_tile_grid(Index batch, Index m, Index n, Index max_m, Index wanted_n) {
  constexpr Index grain = 16;
  auto const even = [](Index extent, Index count) {
    Index const part = (extent + count - 1) / count;
    return std::max<Index>(std::min((part + grain - 1) / grain * grain, extent), 1);
  };
  Index const down = (m + max_m - 1) / max_m, across = (n + wanted_n / 2) / wanted_n;
  return {batch, m, n, even(m, std::max<Index>(down, 1)), even(n, std::max<Index>(across, 1))};
}

// Calls body(part, tile) for each tile; no two threads have the same part. Exceptions of tiles are rethrown.
template <class Body>
void for_each_tile(TileGrid const& grid, int threads, Body&& body) {
  Index const count = grid.size();
  std::atomic<Index> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  parallel_parts(static_cast<int>(std::min<Index>(threads, count)), [&](int part, int) {
    try {
      for (Index i = next++; i < count; i = next++) body(part, grid.at(i));
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
      next = count;
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace cosmati::cpu
