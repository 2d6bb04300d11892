// Average pooling over any window, with and without counting the padding.
#pragma once

#include "src/backend/cpu/chwn/window.h"

namespace cosmati::cpu::chwn {
namespace {

inline void average_row(Pooling const& shape, bool with_padding, Index p, float const* x, float* y) {
  Index const height = counted_taps(shape.rows, p, with_padding);
  for (Index q = 0; q < shape.columns.output; ++q) {
    Vector sum = {};
    for_each_tap<0>(shape, x, p, q, [&](Index, Index, Vector value) { sum += value; });
    Index const count = height * counted_taps(shape.columns, q, with_padding);
    store(y + (p * shape.columns.output + q) * images, sum / static_cast<float>(count));
  }
}

// The same for plain windows of Side x Side, all of whose taps are averaged.
template <int Side>
void average_row(Pooling const& shape, Index p, float const* x, float* y) {
  for (Index q = 0; q < shape.columns.output; ++q) {
    Vector sum = {};
    for_each_tap<Side>(shape, x, p, q, [&](Index, Index, Vector value) { sum += value; });
    store(y + (p * shape.columns.output + q) * images, sum * (1.0f / (Side * Side)));
  }
}

// For windows that tile the image: a row of dy fills Side rows of dx.
template <int Side>
void spread_tiles(Pooling const& shape, Index p, float const* dy, float* dx) {
  for (Index q = 0; q < shape.columns.output; ++q) {
    Vector const gradient = load(dy + (p * shape.columns.output + q) * images) * (1.0f / (Side * Side));
#pragma GCC unroll 2
    for (Index r = 0; r < Side; ++r) {
#pragma GCC unroll 2
      for (Index s = 0; s < Side; ++s)
        store(dx + ((p * Side + r) * shape.columns.input + q * Side + s) * images, gradient);
    }
  }
}

inline void spread_row(Pooling const& shape, bool with_padding, Index h, float const* dy, float* dx) {
  gather_row(shape, h, dx, [&](Index p, Index q) {
    Index const count =
        counted_taps(shape.rows, p, with_padding) * counted_taps(shape.columns, q, with_padding);
    Vector const gradient = load(dy + (p * shape.columns.output + q) * images) / static_cast<float>(count);
    return [gradient](Index, Index) { return gradient; };
  });
}

inline void average_pool(Pooling const& shape, bool with_padding, float const* x, float* y, Share share) {
  bool const two = is_plain(shape, 2);
  Index const x_plane = shape.rows.input * shape.columns.input * images;
  Index const y_plane = shape.rows.output * shape.columns.output * images;
  for (Run run : Runs(shape.channels, shape.rows.output, share)) {
    float const* from = x + run.plane * x_plane + run.lane;
    float* to = y + run.plane * y_plane + run.lane;
    for (Index p = run.lines.first; p < run.lines.last; ++p) {
      if (two)
        average_row<2>(shape, p, from, to);
      else
        average_row(shape, with_padding, p, from, to);
    }
  }
}

inline void average_unpool(Pooling const& shape, bool with_padding, float const* dy, float* dx, Share share) {
  bool const two = is_tiled(shape, 2);
  Index const x_plane = shape.rows.input * shape.columns.input * images;
  Index const y_plane = shape.rows.output * shape.columns.output * images;
  Index const lines = two ? shape.rows.output : shape.rows.input;
  for (Run run : Runs(shape.channels, lines, share)) {
    float const* from = dy + run.plane * y_plane + run.lane;
    float* to = dx + run.plane * x_plane + run.lane;
    for (Index line = run.lines.first; line < run.lines.last; ++line) {
      if (two)
        spread_tiles<2>(shape, line, from, to);
      else
        spread_row(shape, with_padding, line, from, to);
    }
  }
}

}  // namespace
}  // namespace cosmati::cpu::chwn
