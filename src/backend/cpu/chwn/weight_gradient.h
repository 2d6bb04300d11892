// The filter gradient: lanes are images, so each weight's sum stays a vector until its rows are complete, and
// only then is summed over the lanes.
#pragma once

#include "src/backend/cpu/chwn/vector.h"

namespace cosmati::cpu::chwn {
namespace {

// Returns the output channels of the next tile if `left` remain; times five taps they fill the registers.
constexpr Index gradient_outputs(Index left) {
  if (register_budget < 20) return left >= 2 ? 2 : 1;
  return left >= 4 && left % 3 != 0 ? 4 : left >= 3 ? 3 : left;
}

// Returns the outputs whose tap is inside the input.
inline Range outputs_of_tap(Axis const& window, Index tap) {
  Index const offset = tap * window.dilation - window.pad_begin;
  Index const first = offset >= 0 ? 0 : (window.stride - 1 - offset) / window.stride;
  Index const room = window.input - 1 - offset;
  Index const last = room < 0 ? 0 : smaller(window.output, room / window.stride + 1);
  return {first, larger(first, last)};
}

// S adjacent taps of a filter row.
struct GradientTile {
  Index first_input;  // from the start of an input row to the element that tap 0 of output 0 reads, in floats
  Index input_step;   // floats between the inputs of adjacent outputs
  Index input_tap;    // floats between adjacent taps
  Index dy_plane;     // floats between output channels
  Range inside;       // outputs where every tap of the tile is inside the input
  Range around;       // outputs where at least one is
  Range of_tap[5];
};

template <int S>
GradientTile gradient_tile(Convolution const& shape, Index tap) {
  Axis const& columns = shape.columns;
  GradientTile tile = {(tap * columns.dilation - columns.pad_begin) * images,
                       columns.stride * images,
                       columns.dilation * images,
                       shape.rows.output * columns.output * images,
                       {0, columns.output},
                       {columns.output, 0},
                       {}};
  for (int s = 0; s < S; ++s) {
    Range const valid = tile.of_tap[s] = outputs_of_tap(columns, tap + s);
    tile.inside = {larger(tile.inside.first, valid.first), smaller(tile.inside.last, valid.last)};
    tile.around = {smaller(tile.around.first, valid.first), larger(tile.around.last, valid.last)};
  }
  if (tile.inside.first >= tile.inside.last) tile.inside = {tile.around.last, tile.around.last};
  return tile;
}

// Adds outputs [first, last) of a row, where not all taps of the tile are inside the input: K output channels
// by S adjacent taps.
template <int K, int S>
COSMATI_ALWAYS_INLINE void add_edge(GradientTile const& tile, float const* input, float const* dy,
                                    Index first, Index last, Vector (&sum)[K][S]) {
  for (Index q = first; q < last; ++q) {
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) {
      if (q < tile.of_tap[s].first || q >= tile.of_tap[s].last) continue;
      Vector const value = load(input + (tile.first_input + q * tile.input_step + s * tile.input_tap));
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) sum[k][s] += load(dy + q * images + k * tile.dy_plane) * value;
    }
  }
}

// Adds the outputs for which all taps are inside.
template <int K, int S>
COSMATI_ALWAYS_INLINE void add_inside(GradientTile const& tile, float const* input, float const* dy,
                                      Vector (&sum)[K][S]) {
  float const* from = input + (tile.first_input + tile.inside.first * tile.input_step);
  float const* factor = dy + tile.inside.first * images;
#pragma GCC unroll 2  // without it, g++ 12 is a fifth slower
  for (Index q = tile.inside.first; q < tile.inside.last; ++q) {
    Vector value[S];
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) value[s] = load(from + s * tile.input_tap);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
      Vector const here = load(factor + k * tile.dy_plane);
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s) sum[k][s] += here * value[s];
    }
    from += tile.input_step;
    factor += images;
  }
}

template <int K, int S>
COSMATI_ALWAYS_INLINE void add_row(GradientTile const& tile, float const* input, float const* dy,
                                   Vector (&sum)[K][S]) {
  add_edge(tile, input, dy, tile.around.first, tile.inside.first, sum);
  add_inside(tile, input, dy, sum);
  add_edge(tile, input, dy, tile.inside.last, tile.around.last, sum);
}

struct GradientWork {
  Convolution const& shape;
  float const* x;
  float const* dy;
  float* dw;
  Share share;  // of the rows of all vectors of images
};

template <int K, int S>
void add_tile(GradientWork const& work, Index k, Index channel, Index row, Index tap) {
  Convolution const& shape = work.shape;
  GradientTile const tile = gradient_tile<S>(shape, tap);
  Index const in = shape.in_channels / shape.groups;
  Index const group = k / (shape.out_channels / shape.groups);
  Range const inside = outputs_of_tap(shape.rows, row);
  Index const row_offset = row * shape.rows.dilation - shape.rows.pad_begin;
  Index const input_row = shape.columns.input * images;
  Vector sum[K][S] = {};
  for (Run run : Runs(1, shape.rows.output, work.share)) {
    float const* dy = work.dy + k * tile.dy_plane + run.lane;
    float const* x = work.x + (group * in + channel) * shape.rows.input * input_row + run.lane;
    for (Index p = larger(run.lines.first, inside.first); p < smaller(run.lines.last, inside.last); ++p)
      add_row<K, S>(tile, x + (p * shape.rows.stride + row_offset) * input_row,
                    dy + p * shape.columns.output * images, sum);
  }
  for (int i = 0; i < K; ++i) {
    float* to = work.dw + (((k + i) * in + channel) * shape.rows.taps + row) * shape.columns.taps + tap;
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) to[s] += sum_of_lanes(sum[i][s]);
  }
}

template <int K>
void add_taps(GradientWork const& work, Index k, Index channel, Index row) {
  Index const count = work.shape.columns.taps;
  for (Index tap = 0, step = 0; tap < count; tap += step) {
    Index const left = count - tap;
    step = left >= 5 ? 5 : left >= 3 ? 3 : 1;
    if (step == 5)
      add_tile<K, 5>(work, k, channel, row, tap);
    else if (step == 3)
      add_tile<K, 3>(work, k, channel, row, tap);
    else
      add_tile<K, 1>(work, k, channel, row, tap);
  }
}

inline void add_outputs(GradientWork const& work, Index step, Index k, Index channel) {
  for (Index row = 0; row < work.shape.rows.taps; ++row) {
    if (step == 4)
      add_taps<4>(work, k, channel, row);
    else if (step == 3)
      add_taps<3>(work, k, channel, row);
    else if (step == 2)
      add_taps<2>(work, k, channel, row);
    else
      add_taps<1>(work, k, channel, row);
  }
}

inline void add_bias(GradientWork const& work, float* db) {
  Convolution const& shape = work.shape;
  Index const row = shape.columns.output * images;
  for (Index k = 0; k < shape.out_channels; ++k) {
    Vector sum[4] = {};
    for (Run run : Runs(1, shape.rows.output, work.share)) {
      float const* from = work.dy + k * shape.rows.output * row + run.lane;
      Index at = run.lines.first * row;
      for (; at + 4 * images <= run.lines.last * row; at += 4 * images) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) sum[i] += load(from + at + i * images);
      }
      for (; at < run.lines.last * row; at += images) sum[0] += load(from + at);
    }
    db[k] += sum_of_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

inline void convolve_filter(Convolution const& shape, float const* x, float const* dy, float* dw, float* db,
                            Share share) {
  Index const in = shape.in_channels / shape.groups;
  Index const out = shape.out_channels / shape.groups;
  Index const weights = shape.out_channels * in * shape.rows.taps * shape.columns.taps;
  for (Index i = 0; i < weights; ++i) dw[i] = 0.0f;
  for (Index k = 0; db && k < shape.out_channels; ++k) db[k] = 0.0f;
  // Chunks are multiples of the shares, so that each is itself a share of the work.
  Index const rows = (vectors_of_images * shape.rows.output + share.count - 1) / share.count;
  Index const row_floats =
      shape.out_channels * shape.columns.output + shape.in_channels * shape.rows.stride * shape.columns.input;
  Index const chunk_rows = larger(1, shape.chunk_floats / (row_floats * width));
  Index const chunks = (rows + chunk_rows - 1) / chunk_rows;
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    GradientWork const work = {shape, x, dy, dw, {share.number * chunks + chunk, share.count * chunks}};
    for (Index group = 0; group < shape.groups; ++group) {
      for (Index channel = 0; channel < in; ++channel) {
        for (Index k = 0, step = 0; k < out; k += step) {
          step = gradient_outputs(out - k);
          add_outputs(work, step, group * out + k, channel);
        }
      }
    }
    if (db) add_bias(work, db);
  }
}

}  // namespace
}  // namespace cosmati::cpu::chwn
