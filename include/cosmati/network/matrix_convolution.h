// A convolution of a fused network on tensor cores, with factors rounded to tf32 when they are stored: each
// warp computes an implicit matrix product with factors gathered from shared memory. The address of a factor
// is that of its row or column plus that of its depth. The layout of the sums is that of arch/matrix.h.
#pragma once
#include "cosmati/arch/matrix.h"
#include "cosmati/network/convolution_tile.h"

namespace cosmati {

// The rows of a product: windows of `channels` channels, `plane` elements apart, and taps x taps elements in
// lines `pitch` apart. Its columns: filters with channels `next` apart, taps reversed if `flipped`.
template <int channels, int taps, int plane, int pitch, int next, bool flipped>
struct MatrixWindows {};

// The sums of `tiles` tiles of 16 rows and `groups` groups of 8 columns, and pointers to this lane's rows and
// columns at depth 0.
template <int tiles, int groups>
struct MatrixProduct {
  float const *row[tiles][2], *column[groups];
  float sum[tiles][groups][4] = {};

  // Adds the products of eight depths. `a` and `b`: the offsets of this lane's two depths in rows and
  // columns; those that do not exist count as 0, but have valid offsets.
  COSMATI_DEVICE void add(int const (&a)[2], int const (&b)[2], bool const (&exists)[2]) {
    unsigned right[groups][2];
    COSMATI_UNROLL
    for (int n = 0; n < groups; ++n) {
      COSMATI_UNROLL
      for (int h = 0; h < 2; ++h)
        right[n][h] = exists[h] ? __builtin_bit_cast(unsigned, column[n][b[h]]) : 0u;
    }
    COSMATI_UNROLL
    for (int m = 0; m < tiles; ++m) {
      unsigned left[4];
      COSMATI_UNROLL
      for (int r = 0; r < 4; ++r) left[r] = __builtin_bit_cast(unsigned, row[m][r % 2][a[r / 2]]);
      COSMATI_UNROLL
      for (int n = 0; n < groups; ++n) arch::multiply_matrices<tf32, tf32>(sum[m][n], left, right[n]);
    }
  }

  // Adds the products of all channels and taps of a window. The eight depths of a step are adjacent channels
  // at one tap, or adjacent taps in a row, whichever takes fewer steps.
  template <int channels, int taps, int plane, int pitch, int next, bool flipped>
  COSMATI_DEVICE void add(MatrixWindows<channels, taps, plane, pitch, next, flipped>) {
    constexpr bool by_channel = (channels + 7) / 8 * taps <= channels;
    static_assert(by_channel || taps <= 8, "a row of taps is one step");
    int const t = arch::thread() % 4;
    COSMATI_NO_UNROLL
    for (int first = 0; first < channels; first += by_channel ? 8 : 1) {
      int from[2], weight[2];
      bool exists[2];
      COSMATI_UNROLL
      for (int h = 0; h < 2; ++h) {
        int const u = t + 4 * h, end = by_channel ? channels - first : taps;
        exists[h] = (by_channel && channels % 8 == 0) || u < end;
        int const valid = exists[h] ? u : end - 1;
        from[h] = by_channel ? (first + valid) * plane : first * plane + valid;
        weight[h] = by_channel ? (first + valid) * next : first * next + (flipped ? -valid : valid);
      }
      COSMATI_UNROLL
      for (int r = 0; r < taps; ++r) {
        COSMATI_UNROLL
        for (int s = 0; s < (by_channel ? taps : 1); ++s) {
          int const x = r * pitch + s, w = flipped ? taps * taps - 1 - r * taps - s : r * taps + s;
          add({from[0] + x, from[1] + x}, {weight[0] + w, weight[1] + w}, exists);
        }
      }
    }
  }
};

template <FusedNetwork network, int i>
struct MatrixConvolutionTile : ConvolutionTile<network, i> {
  using Tile = ConvolutionTile<network, i>;
  using Tile::at, Tile::images, Tile::threads, Tile::warps, Tile::shared;
  using Tile::gradient_row, Tile::gradient_plane, Tile::filters_at, Tile::sums_at;
  using Tile::layer, Tile::taps, Tile::pool, Tile::channels, Tile::maps, Tile::margin;
  static constexpr int filter = layer.filter_pitch(), map_pitch = channels * filter, plane = layer.plane();

  COSMATI_DEVICE static int minimum(int a, int b) { return a < b ? a : b; }
  COSMATI_DEVICE static int warp() { return arch::thread() / 32; }
  // The row and the first of two adjacent columns of the sums that a lane holds.
  COSMATI_DEVICE static int lane_row() { return arch::thread() % 32 / 4; }
  COSMATI_DEVICE static int lane_column() { return arch::thread() % 4 * 2; }

  // Returns how many tiles of rows a warp computes together, sharing the loads of columns, to minimize the
  // cost. The cost of a step, in cycles: one for each load of a warp, since shared memory serves one per
  // cycle, but at least the latency of a step for each round of tasks.
  static COSMATI_CONSTEXPR int tiles_together(int tiles, int groups) {
    constexpr int latency = 60;
    int best = 1, least = 0;
    for (int together = 1; together == 1 || together * groups <= 4; ++together) {
      int const tasks = (tiles + together - 1) / together, rounds = (tasks + warps - 1) / warps;
      int const loads = tasks * (4 * together + 2 * groups);
      int const cost = loads > rounds * latency ? loads : rounds * latency;
      if (least == 0 || cost < least) best = together, least = cost;
    }
    return best;
  }

  // Rows of the product are sums (with pooling, eight adjacent ones and the eight below); columns are maps.
  COSMATI_DEVICE void forward() const {
    constexpr int across = layer.columns() * pool, each = 16 / pool;  // sums per row; per row of a tile
    constexpr int tiles = (layer.rows() * across + each - 1) / each;
    auto const row = [&](int tile, int h) {
      int const slot = sum_of_row(tile % tiles, h);
      return this->template value<i>(tile / tiles) +
             (slot / across * pool + (pool == 2 ? h : 0)) * layer.row() + slot % across;
    };
    auto const column = [&](int map) { return shared + filters_at + minimum(map, maps - 1) * map_pitch; };
    using Windows = MatrixWindows<channels, taps, plane, layer.row(), filter, false>;
    constexpr int all = images * tiles;
    auto const store = [&](float const(&sum)[4], int tile, int map) {
      store_outputs<tiles, across>(sum, minimum(tile, all - 1), map, tile < all);
    };
    each_tile<all, maps>(row, column, Windows(), store);
  }

  COSMATI_DEVICE void filter_gradient(bool set) const {
    constexpr int weights = channels * taps * taps, columns = layer.sum_columns();
    constexpr int tiles = (weights + 15) / 16, groups = (maps + 7) / 8;
    constexpr int parts = layer.gradient_parts(network.threads), rows = layer.sum_rows();
    constexpr int each = (rows + parts - 1) / parts, batch = each % 5 == 0 ? 5 : each < 4 ? each : 4;  // rows
    float* const sums = shared + (parts == 1 ? sums_at : at.scratch + images * Tile::gradient_size);
    COSMATI_NO_UNROLL
    for (int task = warp(); task < tiles * parts; task += warps) {
      int const tile = task % tiles, part = task / tiles;
      int const t = arch::thread() % 4;
      MatrixProduct<1, groups> product;  // rows are weights of a map, columns are maps, depths are pixels
      COSMATI_UNROLL
      for (int h = 0; h < 2; ++h) {
        int const e = minimum(16 * tile + 8 * h + lane_row(), weights - 1);
        product.row[0][h] = this->template value<i>(0) + e / (taps * taps) * plane +
                            e % (taps * taps) / taps * layer.row() + e % taps;
      }
      COSMATI_UNROLL
      for (int n = 0; n < groups; ++n)
        product.column[n] = this->sum_gradient(0) + minimum(8 * n + lane_row(), maps - 1) * gradient_plane +
                            margin * gradient_row + margin;
      COSMATI_NO_UNROLL
      for (int image = 0; image < images; ++image) {
        constexpr int image_size = at.image;
        COSMATI_NO_UNROLL
        for (int first = part; first < rows; first += parts * batch) {
          COSMATI_UNROLL
          for (int j = 0; j < batch; ++j) {
            int const row = first + j * parts, p = minimum(row, rows - 1);
            int const x = image * image_size + p * layer.row();
            int const dy = image * Tile::gradient_size + p * gradient_row;
            COSMATI_UNROLL
            for (int q = 0; q < columns; q += 8) {
              int const u[] = {minimum(q + t, columns - 1), minimum(q + t + 4, columns - 1)};
              bool const in_row = rows % (parts * batch) == 0 || row < rows;
              bool const exists[] = {in_row && q + t < columns, in_row && q + t + 4 < columns};
              product.add({x + u[0], x + u[1]}, {dy + u[0], dy + u[1]}, exists);
            }
          }
        }
      }
      COSMATI_UNROLL
      for (int n = 0; n < groups; ++n) {
        COSMATI_UNROLL
        for (int r = 0; r < 4; ++r) {
          int const e = 16 * tile + 8 * (r / 2) + lane_row(), k = 8 * n + lane_column() + r % 2;
          if (e >= weights || k >= maps) continue;
          float* const to = sums + (part * maps + k) * weights + e;
          *to = parts > 1 || set ? product.sum[0][n][r] : *to + product.sum[0][n][r];
        }
      }
    }
    if constexpr (parts > 1) {
      arch::block_barrier();
      COSMATI_NO_UNROLL
      for (int e = arch::thread(); e < maps * weights; e += threads) {
        float sum = set ? 0.0f : shared[sums_at + e];
        COSMATI_UNROLL
        for (int part = 0; part < parts; ++part) sum += sums[part * maps * weights + e];
        shared[sums_at + e] = sum;
      }
    }
    this->bias_gradient(set);
  }

  // Rows of the product are inputs, columns are channels.
  COSMATI_DEVICE void data_gradient() const {
    constexpr int inputs = layer.height * layer.width, tiles = (inputs + 15) / 16;
    auto const row = [&](int tile, int h) {
      int const e = minimum(tile % tiles * 16 + 8 * h + lane_row(), inputs - 1);
      return this->sum_gradient(tile / tiles) + (e / layer.width + layer.padding) * gradient_row +
             e % layer.width + layer.padding;
    };
    auto const column = [&](int channel) {
      return shared + filters_at + minimum(channel, channels - 1) * filter;
    };
    using Windows = MatrixWindows<maps, taps, gradient_plane, gradient_row, map_pitch, true>;
    auto const store = [&](float const(&sum)[4], int tile, int channel) {
      COSMATI_UNROLL
      for (int r = 0; r < 4; ++r) {
        int const e = tile % tiles * 16 + 8 * (r / 2) + lane_row(), c = channel + r % 2;
        if (tile < images * tiles && e < inputs && c < channels)
          this->store_gradient(sum[r], tile / tiles, c, e / layer.width, e % layer.width);
      }
    };
    each_tile<images * tiles, channels>(row, column, Windows(), store);
  }

 private:
  // Computes `all` tiles of 16 rows by `columns` columns. row(tile, h) and column(c) return where row
  // lane_row() + 8 h of a tile and column c begin, at depth 0, also for a column beyond the last. store(sum,
  // tile, column), called by all lanes, stores a lane's sums of `column` and the next one; either column, or
  // the tile, may be beyond the last.
  template <int all, int columns, class Row, class Column, class Windows, class Store>
  COSMATI_DEVICE void each_tile(Row const& row, Column const& column, Windows windows,
                                Store const& store) const {
    constexpr int groups = (columns + 7) / 8, together = tiles_together(all, groups);
    COSMATI_NO_UNROLL
    for (int first = warp() * together; first < all; first += warps * together) {
      MatrixProduct<together, groups> product;
      COSMATI_UNROLL
      for (int m = 0; m < together; ++m) {
        int const tile = minimum(first + m, all - 1);
        COSMATI_UNROLL
        for (int h = 0; h < 2; ++h) product.row[m][h] = row(tile, h);
      }
      COSMATI_UNROLL
      for (int n = 0; n < groups; ++n) product.column[n] = column(8 * n + lane_row());
      product.add(windows);
      COSMATI_UNROLL
      for (int m = 0; m < together; ++m) {
        COSMATI_UNROLL
        for (int n = 0; n < groups; ++n) store(product.sum[m][n], first + m, 8 * n + lane_column());
      }
    }
  }

  // Returns the position in its map (windows row by row) of the sum in row lane_row() + 8 h of a tile.
  COSMATI_DEVICE static int sum_of_row(int tile, int h) {
    constexpr int all = layer.rows() * layer.columns() * pool;
    return minimum(pool == 2 ? 8 * tile + lane_row() : 16 * tile + 8 * h + lane_row(), all - 1);
  }

  // Stores the outputs of a lane's sums of maps `map` and `map` + 1. With pooling, adjacent rows belong to
  // one window: of the two lanes that hold them, each stores one map.
  template <int tiles, int across>
  COSMATI_DEVICE void store_outputs(float const (&sum)[4], int tile, int map, bool exists) const {
    int const image = tile / tiles;
    if constexpr (pool == 2) {
      int const slot = tile % tiles * 8 + lane_row();
      bool const right = lane_row() % 2 == 1;
      float const upper = arch::exchange(right ? sum[0] : sum[1], 4);
      float const lower = arch::exchange(right ? sum[2] : sum[3], 4);
      float const window[2][2] = {{right ? upper : sum[0], right ? sum[1] : upper},
                                  {right ? lower : sum[2], right ? sum[3] : lower}};
      int const own = map + (right ? 1 : 0);
      if (exists && slot < layer.rows() * across && own < maps)
        this->finish(window, image, own, slot / across, slot % across / 2);
    } else {
      COSMATI_UNROLL
      for (int r = 0; r < 4; ++r) {
        int const slot = tile % tiles * 16 + 8 * (r / 2) + lane_row(), own = map + r % 2;
        float const window[1][1] = {{sum[r]}};
        if (exists && slot < layer.rows() * across && own < maps)
          this->finish(window, image, own, slot / across, slot % across);
      }
    }
  }
};

}  // namespace cosmati
