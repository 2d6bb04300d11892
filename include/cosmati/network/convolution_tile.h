// A convolution of a fused network, with pooling and function, and its gradients: a block's images in shared
// memory, a tile of adjacent sums of some maps in the registers of each thread.
#pragma once
#include "cosmati/network/block.h"

namespace cosmati {

// sum[m][a][b] += sum over taps r, s of x[a + r, b + s] * w[m][r][s]; flipped: of x[a + taps - 1 - r, ...].
template <int taps, int tile, int maps, bool flipped, bool pairs>
COSMATI_DEVICE void add_windows(float const* x, int row, float const* w, int pitch,
                                float (&sum)[maps][tile][tile]) {
  constexpr int extent = tile + taps - 1, fours = (taps * taps + 3) / 4;
  float patch[extent][extent];
  COSMATI_UNROLL
  for (int a = 0; a < extent; ++a) {
    COSMATI_UNROLL
    for (int b = 0; b < extent; b += pairs ? 2 : 1) {
      if constexpr (pairs) {
        auto const two = arch::load<Vector<float, 2>>(x + a * row + b);
        patch[a][b] = two[0], patch[a][b + 1] = two[1];
      } else {
        patch[a][b] = x[a * row + b];
      }
    }
  }
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

// The number of maps, a divisor of `maps`, that a thread computes together: the fewest instructions on the
// longest path, when `tiles` tiles of each map are distributed over the threads.
COSMATI_CONSTEXPR int maps_together(int tiles, int maps, int threads, int taps, int tile) {
  int best = 1;
  long long least = 0;
  for (int m = 1; m <= 4; ++m) {
    if (maps % m != 0) continue;
    long long const rounds = (tiles * (maps / m) + threads - 1) / threads;
    long long const cost =
        rounds * ((tile + taps - 1) * (tile + taps - 1) / 2 + m * taps * taps * (1 + 4 * tile * tile) / 4);
    if (m == 1 || cost <= least) best = m, least = cost;
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
  static constexpr int margin_row = layer.margin_row(), margin_plane = layer.margin_plane();
  static constexpr int filters_at = at.filters[i], biases_at = filters_at + layer.filters();
  static constexpr int sums_at = at.sums[i], scratch_at = at.scratch;
  static_assert(layer.channels * layer.plane() < 65536, "positions of maxima have 16 bits");

  // Loads the filters and biases.
  COSMATI_DEVICE void load(float const* values) const {
    for (int e = arch::thread(); e < layer.weights(); e += threads)
      shared[filters_at + e / layer.filter() * pitch + e % layer.filter()] = values[layer.weight + e];
    for (int k = arch::thread(); k < maps; k += threads) shared[biases_at + k] = values[layer.bias + k];
  }

  COSMATI_DEVICE void forward() const {
    constexpr int together = maps_together(images * pixels, maps, threads, taps, pool);
    constexpr bool pairs = pool % 2 == 0 && taps % 2 == 1 && layer.row() % 2 == 0 && layer.plane() % 2 == 0;
    constexpr int tasks = images * pixels * (maps / together);
    for (int task = arch::thread(); task < tasks; task += threads) {
      int const pixel = task % pixels, image = task / pixels % images;
      int const map = task / (pixels * images) * together;
      int const row = pixel / layer.columns(), column = pixel % layer.columns();
      int const window = row * pool * layer.row() + column * pool;
      float const* const x = this->template value<i>(image) + window;
      float const* const w = shared + filters_at + map * channels * pitch;
      float sum[together][pool][pool] = {};
      COSMATI_NO_UNROLL
      for (int c = 0; c < channels; ++c)
        add_windows<taps, pool, together, false, pairs>(x + c * layer.plane(), layer.row(), w + c * pitch,
                                                        channels * pitch, sum);
      COSMATI_UNROLL
      for (int m = 0; m < together; ++m) {
        float const bias = shared[biases_at + map + m];
        float result = sum[m][0][0];
        int position = 0;
        COSMATI_UNROLL
        for (int p = 1; p < pool * pool; ++p) {
          float const other = sum[m][p / pool][p % pool];
          if constexpr (layer.maximum) {
            if (other > result) result = other, position = p / pool * layer.row() + p % pool;
          } else {
            result += other;
          }
        }
        if constexpr (layer.maximum)
          this->template positions<i>(image)[(map + m) * pixels + pixel] =
              static_cast<unsigned short>(window + position);
        else
          result *= 1.0f / (pool * pool);
        this->template value<i + 1>(image)[Block::template element<i + 1>(map + m, row, column)] =
            fused_value<layer.function>(result + bias);
      }
    }
  }

  // Calls use(window, gradient) for the sums of output e that have a gradient; window: in value(i).
  template <class Use>
  COSMATI_DEVICE void each_sum(int e, int image, Use const& use) const {
    float const gradient = this->template gradient<i + 1>(image)[e];
    if constexpr (layer.maximum) {
      use(this->template positions<i>(image)[e], gradient);
    } else {
      int const pixel = e % pixels;
      int const window = pixel / layer.columns() * pool * layer.row() + pixel % layer.columns() * pool;
      COSMATI_UNROLL
      for (int p = 0; p < pool * pool; ++p)
        use(window + p / pool * layer.row() + p % pool, gradient * (1.0f / (pool * pool)));
    }
  }

  // Adds the gradients of filters and biases over the images to the block's sums, or sets them. A thread has
  // a row of taps, and adjacent lanes share its pixels.
  COSMATI_DEVICE void filter_gradient(bool set) const {
    constexpr int rows = maps * channels * taps;
    constexpr int parts = rows * 32 <= threads   ? 32
                          : rows * 16 <= threads ? 16
                          : rows * 8 <= threads  ? 8
                          : rows * 4 <= threads  ? 4
                          : rows * 2 <= threads  ? 2
                                                 : 1;
    float* const sums = shared + sums_at;
    for (int first = 0; first < rows * parts; first += threads) {
      int const part = arch::thread() % parts, mine = (first + arch::thread()) / parts;
      int const row = mine < rows ? mine : rows - 1;
      int const r = row % taps, c = row / taps % channels, k = row / (taps * channels);
      float sum[taps] = {};
      for (int image = 0; image < images; ++image) {
        float const* const x = this->template value<i>(image) + c * layer.plane() + r * layer.row();
        for (int pixel = part; pixel < pixels; pixel += parts)
          each_sum(k * pixels + pixel, image, [&](int window, float gradient) {
            COSMATI_UNROLL
            for (int s = 0; s < taps; ++s) sum[s] = arch::multiply_add(x[window + s], gradient, sum[s]);
          });
      }
      COSMATI_UNROLL
      for (int s = 0; s < taps; ++s) {
        float const total = sum_of_lanes<parts>(sum[s]);
        if (part == 0 && mine < rows) sums[row * taps + s] = set ? total : sums[row * taps + s] + total;
      }
    }
    for (int k = arch::thread() / 32; k < maps; k += warps) {
      float sum = 0;
      for (int image = 0; image < images; ++image)
        for (int pixel = arch::thread() % 32; pixel < pixels; pixel += 32)
          sum += this->template gradient<i + 1>(image)[k * pixels + pixel];
      sum = sum_of_lanes<32>(sum);
      if (arch::thread() % 32 == 0) sums[layer.weights() + k] = set ? sum : sums[layer.weights() + k] + sum;
    }
  }

  COSMATI_DEVICE float* with_margin(int image) const {
    return shared + scratch_at + image * maps * margin_plane;
  }
  COSMATI_DEVICE void clear_margins() const {
    for (int e = arch::thread(); e < images * maps * margin_plane / 4; e += threads)
      arch::store(shared + scratch_at + 4 * e, Four{});
  }
  // Distributes the gradients of the outputs to those of the sums, which are zero, with margins.
  COSMATI_DEVICE void spread() const {
    for (int task = arch::thread(); task < images * layer.outputs(); task += threads) {
      int const e = task % layer.outputs(), image = task / layer.outputs();
      float* const plane =
          with_margin(image) + e / pixels * margin_plane + (taps - 1) * margin_row + taps - 1;
      each_sum(e, image, [&](int window, float gradient) {
        plane[window / layer.row() * margin_row + window % layer.row()] = gradient;
      });
    }
  }

  // gradient(i), after spread().
  COSMATI_DEVICE void data_gradient() const {
    constexpr FusedLayer before = network.layer[i - 1];
    constexpr int tile = 2, rows = (layer.height + 1) / 2, columns = (layer.width + 1) / 2;
    constexpr int tiles = rows * columns;
    constexpr int together = maps_together(images * tiles, channels, threads, taps, tile);
    constexpr int tasks = images * tiles * (channels / together);
    for (int task = arch::thread(); task < tasks; task += threads) {
      int const place = task % tiles, image = task / tiles % images;
      int const channel = task / (tiles * images) * together;
      int const row = place / columns * tile, column = place % columns * tile;
      float const* const x = with_margin(image) + (row + layer.padding) * margin_row + column + layer.padding;
      float const* const w = shared + filters_at + channel * pitch;
      float sum[together][tile][tile] = {};
      COSMATI_NO_UNROLL
      for (int k = 0; k < maps; ++k)
        add_windows<taps, tile, together, true, layer.padding % 2 == 0 && taps % 2 == 1>(
            x + k * margin_plane, margin_row, w + k * channels * pitch, pitch, sum);
      COSMATI_UNROLL
      for (int m = 0; m < together; ++m) {
        COSMATI_UNROLL
        for (int p = 0; p < tile * tile; ++p) {
          int const y = row + p / tile, z = column + p % tile;
          if (y >= layer.height || z >= layer.width) continue;
          float const value = this->template value<i>(image)[Block::template element<i>(channel + m, y, z)];
          this->template gradient<i>(image)[((channel + m) * layer.height + y) * layer.width + z] =
              fused_derivative<before.function>(sum[m][p / tile][p % tile], value);
        }
      }
    }
  }
};

}  // namespace cosmati
