// The sum for convolution and its data gradient:
// target[k][t] = bias[k] + sum over (channel, row, column) of weight[k] * source[t].
#pragma once

#include "src/backend/cpu/chwn/vector.h"

namespace cosmati::cpu::chwn {
namespace {

// One loop of the sum: its length, and the steps of both addresses, in floats.
struct Loop {
  Index count;
  Index source;
  Index weight;
};

struct Correlation {
  Loop channels;
  Loop rows;
  Loop columns;
  Index weight_output;  // floats between the weights of adjacent output channels
  Index target_output;
  Index source_tile;  // floats between adjacent vectors t of a tile
  Index target_tile;
  bool relu;
};

// Returns the same pointer, hiding its origin from the compiler. Two bases reach six addresses with factors
// 0, 1 and 2; from one base g++ 12 keeps five offsets in registers that it then lacks outside the innermost
// loop (2 %).
inline float const* opaque(float const* pointer) {
  __asm__("" : "+r"(pointer));
  return pointer;
}

// K output channels by T vectors stay in registers; each weight is broadcast once for T products, and each
// source vector is loaded once for K.
template <int K, int T>
void correlate_tile(Correlation const& sum_over, float const* source, float const* weights, float const* bias,
                    float* target) {
  Vector sum[K][T];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
    Vector const start = bias ? broadcast(bias[k]) : Vector{};
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sum[k][t] = start;
  }
  Index const source_tile = sum_over.source_tile;
  Index const weight_output = sum_over.weight_output;
  Loop const rows = sum_over.rows;
  Loop const columns = sum_over.columns;
  Index const source_row = rows.source - columns.count * columns.source;
  Index const weight_row = rows.weight - columns.count * columns.weight;
  for (Index channel = 0; channel < sum_over.channels.count; ++channel) {
    float const* from = source + channel * sum_over.channels.source;
    float const* weight = weights + channel * sum_over.channels.weight;
    for (Index row = 0; row < rows.count; ++row) {
      for (Index column = 0; column < columns.count; ++column) {
        float const* const far_from = opaque(from + (T > 3 ? 3 * source_tile : 0));
        float const* const far_weight = opaque(weight + (K > 3 ? 3 * weight_output : 0));
        Vector value[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t)
          value[t] = load(t < 3 ? from + t * source_tile : far_from + (t - 3) * source_tile);
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
          Vector const factor =
              broadcast(k < 3 ? weight[k * weight_output] : far_weight[(k - 3) * weight_output]);
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t) sum[k][t] += factor * value[t];
        }
        from += columns.source;
        weight += columns.weight;
      }
      from += source_row;
      weight += weight_row;
    }
  }
  // Copies, because a store could change what the reference refers to.
  Index const target_output = sum_over.target_output;
  Index const target_tile = sum_over.target_tile;
  if (sum_over.relu) {
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sum[k][t] = relu_of(sum[k][t]);
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) store(target + k * target_output + t * target_tile, sum[k][t]);
  }
}

using TileFunction = void (*)(Correlation const&, float const*, float const*, float const*, float*);

constexpr int largest_tile(int k) { return register_budget / k < 6 ? register_budget / k : 6; }

template <int K>
TileFunction tile_of(Index t) {
  constexpr int limit = largest_tile(K);
  switch (t) {
    case 1: return correlate_tile<K, 1>;
    case 2: return correlate_tile<K, (limit < 2 ? limit : 2)>;
    case 3: return correlate_tile<K, (limit < 3 ? limit : 3)>;
    case 4: return correlate_tile<K, (limit < 4 ? limit : 4)>;
    case 5: return correlate_tile<K, (limit < 5 ? limit : 5)>;
    default: return correlate_tile<K, limit>;
  }
}

inline TileFunction tile_of(Index k, Index t) {
  switch (k) {
    case 6: return tile_of<6>(t);
    case 4: return tile_of<4>(t);
    case 2: return tile_of<2>(t);
    default: return tile_of<1>(t);
  }
}

// Returns the output channels of the next tile if `left` remain.
constexpr Index outputs_of_tile(Index left) { return left % 6 == 0 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1; }

// Returns the vectors of the next tile: as few tiles as the registers allow, of nearly equal size.
constexpr Index vectors_of_tile(Index left, Index k) {
  Index const limit = largest_tile(static_cast<int>(k));
  Index const tiles = (left + limit - 1) / limit;
  return (left + tiles - 1) / tiles;
}

// Computes `outputs` channels by `count` vectors, tile by tile; bias may be null.
inline void correlate(Correlation const& sum_over, Index outputs, Index count, float const* source,
                      float const* weights, float const* bias, float* target) {
  for (Index k = 0, step = 0; k < outputs; k += step) {
    step = outputs_of_tile(outputs - k);
    for (Index t = 0, size = 0; t < count; t += size) {
      size = vectors_of_tile(count - t, step);
      tile_of(step, size)(sum_over, source + t * sum_over.source_tile, weights + k * sum_over.weight_output,
                          bias ? bias + k : nullptr,
                          target + k * sum_over.target_output + t * sum_over.target_tile);
    }
  }
}

}  // namespace
}  // namespace cosmati::cpu::chwn
