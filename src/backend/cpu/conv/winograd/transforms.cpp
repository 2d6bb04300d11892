#include "src/backend/cpu/conv/winograd/transforms.h"

#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

// The products of B, G and A with a vector in place, of elements `step` apart.
COSMATI_ALWAYS_INLINE void times_b(float* d, int step) {
  float const a = d[0], b = d[step], c = d[2 * step], e = d[3 * step];
  d[0] = c - a;
  d[step] = b + c;
  d[2 * step] = c - b;
  d[3 * step] = e - b;
}
COSMATI_ALWAYS_INLINE void times_g(float const* g, int step, float* to, int to_step) {
  float const ends = 0.5f * (g[0] + g[2 * step]), middle = 0.5f * g[step];
  to[0] = -g[0];
  to[to_step] = ends + middle;
  to[2 * to_step] = ends - middle;
  to[3 * to_step] = g[2 * step];
}
COSMATI_ALWAYS_INLINE void times_a(float const* m, int step, float* to, int to_step) {
  float const sum = m[step] + m[2 * step], difference = m[step] - m[2 * step];
  to[0] = m[0] + sum;
  to[to_step] = difference + m[3 * step];
}

COSMATI_ALWAYS_INLINE void tile_loop(float const* const* from, float* to, Index pitch, Index count) {
  float const* d[winograd_positions];
  for (int i = 0; i < winograd_positions; ++i) d[i] = from[i];
  COSMATI_INDEPENDENT
  for (Index c = 0; c < count; ++c) {
    float value[winograd_positions];
    for (int i = 0; i < winograd_positions; ++i) value[i] = d[i][c];
    for (int row = 0; row < 4; ++row) times_b(value + 4 * row, 1);
    for (int column = 0; column < 4; ++column) times_b(value + column, 4);
    for (int i = 0; i < winograd_positions; ++i) to[i * pitch + c] = value[i];
  }
}

COSMATI_ALWAYS_INLINE void filter_loop(float const* const* from, float* const* to, Index count) {
  float const* g[winograd_taps];
  for (int i = 0; i < winograd_taps; ++i) g[i] = from[i];
  float* u[winograd_positions];
  for (int i = 0; i < winograd_positions; ++i) u[i] = to[i];
  COSMATI_INDEPENDENT
  for (Index c = 0; c < count; ++c) {
    float value[winograd_taps], rows[12], made[winograd_positions];
    for (int i = 0; i < winograd_taps; ++i) value[i] = g[i][c];
    for (int column = 0; column < 3; ++column) times_g(value + column, 3, rows + column, 3);
    for (int row = 0; row < 4; ++row) times_g(rows + 3 * row, 1, made + 4 * row, 1);
    for (int i = 0; i < winograd_positions; ++i) u[i][c] = made[i];
  }
}

COSMATI_ALWAYS_INLINE void sums_loop(float const* const* from, float* const* to, Index count) {
  float const* m[winograd_positions];
  for (int i = 0; i < winograd_positions; ++i) m[i] = from[i];
  float* y[winograd_outputs];
  for (int i = 0; i < winograd_outputs; ++i) y[i] = to[i];
  COSMATI_INDEPENDENT
  for (Index c = 0; c < count; ++c) {
    float value[winograd_positions], columns[8], made[winograd_outputs];
    for (int i = 0; i < winograd_positions; ++i) value[i] = m[i][c];
    for (int column = 0; column < 4; ++column) times_a(value + column, 4, columns + column, 4);
    for (int row = 0; row < 2; ++row) times_a(columns + 4 * row, 1, made + 2 * row, 1);
    for (int i = 0; i < winograd_outputs; ++i) y[i][c] = made[i];
  }
}

}  // namespace

void transform_tile(float const* const (&from)[winograd_positions], float* to, Index pitch, Index count) {
  Clones<tile_loop>::call(from, to, pitch, count);
}
void transform_filter(float const* const (&from)[winograd_taps], float* const (&to)[winograd_positions],
                      Index count) {
  Clones<filter_loop>::call(from, to, count);
}
void transform_sums(float const* const (&from)[winograd_positions], float* const (&to)[winograd_outputs],
                    Index count) {
  Clones<sums_loop>::call(from, to, count);
}

}  // namespace cosmati::cpu
