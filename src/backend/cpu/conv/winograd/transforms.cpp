// Vectorized over channels for each level of instructions.
#include "src/backend/cpu/conv/winograd/transforms.h"

#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

// The products of B, G and A with a column whose elements are `step` apart.
COSMATI_ALWAYS_INLINE void times_b(float const* d, float* to, int step) {
  float const first = d[0], second = d[step], third = d[2 * step], fourth = d[3 * step];
  to[0] = third - first;
  to[step] = second + third;
  to[2 * step] = third - second;
  to[3 * step] = fourth - second;
}
COSMATI_ALWAYS_INLINE void times_g(float const* g, float* to, int step) {
  float const ends = 0.5f * (g[0] + g[2 * step]), middle = 0.5f * g[step];
  to[0] = -g[0];
  to[step] = ends + middle;
  to[2 * step] = ends - middle;
  to[3 * step] = g[2 * step];
}
COSMATI_ALWAYS_INLINE void times_a(float const* m, float* to, int step) {
  float const sum = m[step] + m[2 * step], difference = m[step] - m[2 * step];
  to[0] = m[0] + sum;
  to[step] = difference + m[3 * step];
}

COSMATI_ALWAYS_INLINE void of_tile(float const* d, float* to) {
  float columns[16];
  for (int column = 0; column < 4; ++column) times_b(d + column, columns + column, 4);
  for (int row = 0; row < 4; ++row) times_b(columns + 4 * row, to + 4 * row, 1);
}
COSMATI_ALWAYS_INLINE void of_filter(float const* g, float* to) {
  float columns[12];
  for (int column = 0; column < 3; ++column) times_g(g + column, columns + column, 3);
  for (int row = 0; row < 4; ++row) times_g(columns + 3 * row, to + 4 * row, 1);
}
COSMATI_ALWAYS_INLINE void of_sums(float const* m, float* to) {
  float columns[8];
  for (int column = 0; column < 4; ++column) times_a(m + column, columns + column, 4);
  for (int row = 0; row < 2; ++row) times_a(columns + 4 * row, to + 2 * row, 1);
}

template <int sources, int results, void (*transform)(float const*, float*)>
COSMATI_ALWAYS_INLINE void for_each_channel(float const* const* from, float* const* to, Index count) {
  float const* source[sources];
  for (int i = 0; i < sources; ++i) source[i] = from[i];
  float* result[results];
  for (int i = 0; i < results; ++i) result[i] = to[i];
  COSMATI_INDEPENDENT
  for (Index c = 0; c < count; ++c) {
    float value[sources], made[results];
    for (int i = 0; i < sources; ++i) value[i] = source[i][c];
    transform(value, made);
    for (int i = 0; i < results; ++i) result[i][c] = made[i];
  }
}

}  // namespace

void transform_tile(TileLines from, TransformedLines to, Index count) {
  Clones<for_each_channel<winograd_positions, winograd_positions, of_tile>>::call(from, to, count);
}
void transform_filter(float const* const (&from)[winograd_taps], TransformedLines to, Index count) {
  Clones<for_each_channel<winograd_taps, winograd_positions, of_filter>>::call(from, to, count);
}
void transform_sums(TileLines from, float* const (&to)[winograd_outputs], Index count) {
  Clones<for_each_channel<winograd_positions, winograd_outputs, of_sums>>::call(from, to, count);
}

}  // namespace cosmati::cpu
