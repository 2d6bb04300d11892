// A convolution of a fused network, with pooling and activation, and its gradients. A block's images are in
// shared memory; each thread keeps a tile of adjacent sums of some maps in registers.
#pragma once
#include "cosmati/network/block.h"

namespace cosmati {

// Loads `count` floats, two at a time from even addresses if `pairs`.
template <int count, bool pairs>
COSMATI_DEVICE void load_row(float const* from, float (&to)[count]) {
  if constexpr (pairs) {
    COSMATI_UNROLL
    for (int b = 0; b + 1 < count; b += 2) {
      auto const two = arch::load<Vector<float, 2>>(from + b);
      to[b] = two[0], to[b + 1] = two[1];
    }
    if constexpr (count % 2 == 1) to[count - 1] = from[count - 1];
  } else {
    COSMATI_UNROLL
    for (int b = 0; b < count; ++b) to[b] = from[b];
  }
}

// sum[m][a][b] += sum over taps r, s of x[a + r, b + s] * w[m][r][s]; flipped: of x[a + taps - 1 - r, ...].
template <int taps, int tile, int maps, bool flipped, bool pairs>
COSMATI_DEVICE void add_windows(float const* x, int row, float const* w, int pitch,
                                float (&sum)[maps][tile][tile]) {
  constexpr int extent = tile + taps - 1, fours = (taps * taps + 3) / 4;
  float patch[extent][extent];
  COSMATI_UNROLL
  for (int a = 0; a < extent; ++a) load_row<extent, pairs>(x + a * row, patch[a]);
  COSMATI_UNROLL
  for (int m = 0; m < maps; ++m) {
    float filter[4 * fours];
    COSMATI_UNROLL
    for (int f = 0; f < fours; ++f) {
      auto const four = arch::load<Four>(w + m * pitch + 4 * f);
      COSMATI_UNROLL
      for (int j = 0; j < 4; ++j) filter[4 * f + j] = four[j];
    }
    COSMATI_UNROLL
    for (int r = 0; r < taps; ++r) {
      COSMATI_UNROLL
      for (int s = 0; s < taps; ++s) {
        float const weight = filter[flipped ? taps * taps - 1 - r * taps - s : r * taps + s];
        COSMATI_UNROLL
        for (int a = 0; a < tile; ++a) {
          COSMATI_UNROLL
          for (int b = 0; b < tile; ++b)
            sum[m][a][b] = arch::multiply_add(patch[a + r][b + s], weight, sum[m][a][b]);
        }
      }
    }
  }
}

// How the threads share the sums of `maps` maps of `tiles` tiles: a thread computes `together` maps of a
// tile, and `parts` adjacent lanes share its addends. share_tiles() minimizes the busiest thread's work.
struct TileSharing {
  int together = 1, parts = 1;
};
COSMATI_CONSTEXPR TileSharing share_tiles(int tiles, int maps, int addends, int max_parts, int threads,
                                          int taps, int tile) {
  TileSharing best;
  long long minimum = 0;
  for (int parts = 1; parts <= max_parts && addends % parts == 0; parts *= 2)
    for (int m = 1; m <= 4; ++m) {
      if (maps % m != 0) continue;
      long long const rounds = (tiles * (maps / m) * parts + threads - 1) / threads;
      long long const patch = (tile + taps - 1) * (tile + taps - 1);
      // Loading an element of the patch takes as long as four multiply-adds.
      long long const each = 4 * patch + m * taps * taps * (1 + tile * tile);
      long long const cost = rounds * (addends / parts * each + 8 * (parts - 1) * m * tile * tile);
      if (minimum == 0 || cost < minimum) best = {m, parts}, minimum = cost;
    }
  return best;
}

template <FusedNetwork network, int i>
struct ConvolutionTile : FusedBlock<network> {
  using Block = FusedBlock<network>;
  using Block::at, Block::images, Block::threads, Block::warps, Block::shared;
  static constexpr FusedLayer layer = network.layer[i];
  static constexpr int taps = layer.taps, pool = layer.pool, pixels = layer.pixels();
  static constexpr int channels = layer.channels, maps = layer.maps, pitch = layer.filter_pitch();
  static constexpr int margin = i > 0 ? taps - 1 : 0;  // around the gradients of all sums
  static constexpr int gradient_row = layer.gradient_row(i > 0), gradient_plane = layer.gradient_plane(i > 0);
  static constexpr int gradient_size = layer.gradient_size(i > 0);  // of an image
  static constexpr int filters_at = at.filters[i], biases_at = filters_at + layer.filters();
  static constexpr int sums_at = at.sums[i], scratch_at = at.scratch;
  static_assert(layer.channels * layer.plane() <= max_fused_positions, "positions of maxima have 16 bits");

  // This thread's part of the filters and biases, between loading and storing them.
  static constexpr int filter_rounds = (layer.weights() + threads - 1) / threads;
  static constexpr int bias_rounds = (maps + threads - 1) / threads;
  struct Filters {
    float weight[filter_rounds], bias[bias_rounds];
  };
  COSMATI_DEVICE void load(float const* values, Filters& filters) const {
    COSMATI_UNROLL
    for (int round = 0; round < filter_rounds; ++round) {
      int const e = round * threads + arch::thread();
      if (e < layer.weights()) filters.weight[round] = values[layer.weight + e];
    }
    COSMATI_UNROLL
    for (int round = 0; round < bias_rounds; ++round) {
      int const k = round * threads + arch::thread();
      if (k < maps) filters.bias[round] = values[layer.bias + k];
    }
  }
  COSMATI_DEVICE void store(Filters const& filters) const {
    COSMATI_UNROLL
    for (int round = 0; round < filter_rounds; ++round) {
      int const e = round * threads + arch::thread();
      if (e < layer.weights())
        shared[filters_at + e / layer.filter() * pitch + e % layer.filter()] =
            fused_factor<layer.tf32>(filters.weight[round]);
    }
    COSMATI_UNROLL
    for (int round = 0; round < bias_rounds; ++round) {
      int const k = round * threads + arch::thread();
      if (k < maps) shared[biases_at + k] = filters.bias[round];
    }
  }

  COSMATI_DEVICE void forward() const {
    constexpr int slots = layer.slots(), tiles = layer.rows() * slots;
    constexpr TileSharing sharing = share_tiles(images * tiles, maps, channels, 2, threads, taps, pool);
    constexpr int together = sharing.together, parts = sharing.parts;
    constexpr int tasks = images * tiles * (maps / together) * parts;
    COSMATI_NO_UNROLL
    for (int first = 0; first < tasks; first += threads) {
      int const part = arch::thread() % parts, mine = (first + arch::thread()) / parts;
      int const task = mine < tasks / parts ? mine : 0;
      int const column = task % slots, row = task / slots % layer.rows(), image = task / tiles % images;
      int const map = task / (tiles * images) * together;
      int const window = row * pool * layer.row() + column * pool;
      bool const exists = mine < tasks / parts && column < layer.columns();
      float sum[together][pool][pool] = {};
      if (exists) {
        float const* const x = this->template value<i>(image) + window;
        float const* const w = shared + filters_at + map * channels * pitch;
        COSMATI_NO_UNROLL
        for (int c = part; c < channels; c += parts)
          add_windows<taps, pool, together, false, pool == 2>(x + c * layer.plane(), layer.row(),
                                                              w + c * pitch, channels * pitch, sum);
      }
      COSMATI_UNROLL
      for (int m = 0; m < together; ++m) {
        COSMATI_UNROLL
        for (int p = 0; p < pool * pool; ++p)
          sum[m][p / pool][p % pool] = sum_of_lanes<parts>(sum[m][p / pool][p % pool]);
        if (exists && m % parts == part) finish(sum[m], image, map + m, row, column);
      }
    }
  }
  // Stores the output of a window of sums: pooling, bias and activation.
  COSMATI_DEVICE void finish(float const (&sum)[pool][pool], int image, int map, int row, int column) const {
    float result = sum[0][0];
    int position = 0;
    COSMATI_UNROLL
    for (int p = 1; p < pool * pool; ++p) {
      float const other = sum[p / pool][p % pool];
      if constexpr (layer.maximum) {
        if (other > result) result = other, position = p / pool * layer.row() + p % pool;
      } else {
        result += other;
      }
    }
    if constexpr (layer.maximum)
      this->template positions<i>(image)[map * pixels + row * layer.columns() + column] =
          static_cast<unsigned short>(row * pool * layer.row() + column * pool + position);
    else
      result *= 1.0f / (pool * pool);
    this->template value<i + 1>(image)[Block::template element<i + 1>(map, row, column)] =
        fused_factor<Block::template rounds<i + 1>()>(
            fused_value<layer.function>(result + shared[biases_at + map]));
  }

  COSMATI_DEVICE float* sum_gradient(int image) const { return shared + scratch_at + image * gradient_size; }
  COSMATI_DEVICE void clear_sum_gradients() const {
    COSMATI_NO_UNROLL
    for (int e = 4 * arch::thread(); e < images * gradient_size; e += 4 * threads)
      arch::store(shared + scratch_at + e, Four{});
  }
  // Scatters the gradients of the outputs to those of the sums, which are zero before.
  COSMATI_DEVICE void spread() const {
    COSMATI_NO_UNROLL
    for (int task = arch::thread(); task < images * layer.outputs(); task += threads) {
      int const e = task % layer.outputs(), image = task / layer.outputs(), pixel = e % pixels;
      constexpr float scale = layer.maximum ? 1.0f : 1.0f / (pool * pool);
      float const gradient = fused_factor<layer.tf32>(this->template gradient<i + 1>(image)[e] * scale);
      float* const plane = sum_gradient(image) + e / pixels * gradient_plane + margin * gradient_row + margin;
      if constexpr (layer.maximum) {
        int const window = this->template positions<i>(image)[e];
        plane[window / layer.row() * gradient_row + window % layer.row()] = gradient;
      } else {
        COSMATI_UNROLL
        for (int p = 0; p < pool * pool; ++p)
          plane[(pixel / layer.columns() * pool + p / pool) * gradient_row + pixel % layer.columns() * pool +
                p % pool] = gradient;
      }
    }
  }

  // Call after spread(). Accumulates (with `set`: stores) the filter and bias gradients of the block's
  // images. A thread computes one row of taps of several filters; adjacent lanes share the rows of the
  // images.
  COSMATI_DEVICE void filter_gradient(bool set) const {
    constexpr int together = maps % 4 == 0 ? 4 : maps % 3 == 0 ? 3 : maps % 2 == 0 ? 2 : 1;
    constexpr int tasks = maps / together * channels * taps, rows = layer.sum_rows();
    constexpr int parts = tasks * 32 <= threads   ? 32
                          : tasks * 16 <= threads ? 16
                          : tasks * 8 <= threads  ? 8
                          : tasks * 4 <= threads  ? 4
                          : tasks * 2 <= threads  ? 2
                                                  : 1;
    constexpr int columns = layer.sum_columns();
    static_assert(columns <= max_fused_columns, "a row of sums is in registers");
    float* const sums = shared + sums_at;
    COSMATI_NO_UNROLL
    for (int first = 0; first < tasks * parts; first += threads) {
      int const part = arch::thread() % parts, mine = (first + arch::thread()) / parts;
      int const task = mine < tasks ? mine : tasks - 1;
      int const r = task % taps, c = task / taps % channels, k = task / (taps * channels) * together;
      float sum[together][taps] = {};
      COSMATI_NO_UNROLL
      for (int row = part; row < images * rows; row += parts) {
        int const image = row / rows, p = row % rows;
        float x[columns + taps - 1];
        load_row<columns + taps - 1, layer.row() % 2 == 0>(
            this->template value<i>(image) + c * layer.plane() + (p + r) * layer.row(), x);
        COSMATI_UNROLL
        for (int m = 0; m < together; ++m) {
          float dy[columns];
          load_row<columns, margin % 2 == 0>(
              sum_gradient(image) + (k + m) * gradient_plane + (p + margin) * gradient_row + margin, dy);
          COSMATI_UNROLL
          for (int q = 0; q < columns; ++q) {
            COSMATI_UNROLL
            for (int s = 0; s < taps; ++s) sum[m][s] = arch::multiply_add(x[q + s], dy[q], sum[m][s]);
          }
        }
      }
      COSMATI_UNROLL
      for (int m = 0; m < together; ++m) {
        COSMATI_UNROLL
        for (int s = 0; s < taps; ++s) {
          float const total = sum_of_lanes<parts>(sum[m][s]);
          int const e = (((k + m) * channels + c) * taps + r) * taps + s;
          if (part == 0 && mine < tasks) sums[e] = set ? total : sums[e] + total;
        }
      }
    }
    bias_gradient(set);
  }
  COSMATI_DEVICE void bias_gradient(bool set) const {
    float* const sums = shared + sums_at;
    COSMATI_NO_UNROLL
    for (int k = arch::thread() / 32; k < maps; k += warps) {
      float sum = 0;
      COSMATI_NO_UNROLL
      for (int e = arch::thread() % 32; e < images * pixels; e += 32)
        sum += this->template gradient<i + 1>(e / pixels)[k * pixels + e % pixels];
      sum = sum_of_lanes<32>(sum);
      if (arch::thread() % 32 == 0) sums[layer.weights() + k] = set ? sum : sums[layer.weights() + k] + sum;
    }
  }

  // Computes gradient(i), after spread().
  COSMATI_DEVICE void data_gradient() const {
    constexpr int tile = 2, rows = (layer.height + 1) / 2, columns = (layer.width + 1) / 2;
    constexpr int slots = layer.data_slots(), tiles = rows * slots;
    constexpr TileSharing sharing = share_tiles(images * tiles, channels, maps, 2, threads, taps, tile);
    constexpr int together = sharing.together, parts = sharing.parts;
    constexpr int tasks = images * tiles * (channels / together) * parts;
    COSMATI_NO_UNROLL
    for (int first = 0; first < tasks; first += threads) {
      int const part = arch::thread() % parts, mine = (first + arch::thread()) / parts;
      int const task = mine < tasks / parts ? mine : 0;
      int const slot = task % slots, image = task / tiles % images;
      int const channel = task / (tiles * images) * together;
      int const row = task / slots % rows * tile, column = slot * tile;
      float const* const x =
          sum_gradient(image) + (row + layer.padding) * gradient_row + column + layer.padding;
      float const* const w = shared + filters_at + channel * pitch;
      float sum[together][tile][tile] = {};
      if (slot < columns) {
        COSMATI_NO_UNROLL
        for (int k = part; k < maps; k += parts)
          add_windows<taps, tile, together, true, layer.padding % 2 == 0>(
              x + k * gradient_plane, gradient_row, w + k * channels * pitch, pitch, sum);
      }
      COSMATI_UNROLL
      for (int m = 0; m < together; ++m) {
        COSMATI_UNROLL
        for (int p = 0; p < tile * tile; ++p) {
          float const total = sum_of_lanes<parts>(sum[m][p / tile][p % tile]);
          int const y = row + p / tile, z = column + p % tile;
          if (part != 0 || mine >= tasks / parts || y >= layer.height || z >= layer.width) continue;
          store_gradient(total, image, channel + m, y, z);
        }
      }
    }
  }
  // Stores an element of gradient(i), from the gradient of the input.
  COSMATI_DEVICE void store_gradient(float gradient, int image, int channel, int row, int column) const {
    constexpr FusedLayer before = network.layer[i - 1];
    float const value = this->template value<i>(image)[Block::template element<i>(channel, row, column)];
    this->template gradient<i>(image)[(channel * layer.height + row) * layer.width + column] =
        fused_derivative<before.function>(gradient, value);
  }
};

}  // namespace cosmati
