// Maximum pooling over any window. Forward stores the position of each maximum; backward reads only that.
#pragma once

#include "src/backend/cpu/chwn/window.h"

namespace cosmati::cpu::chwn {
namespace {

struct NoMark {};

constexpr int mark_of(unsigned char, Index tap, Index) { return static_cast<int>(tap); }
constexpr int mark_of(int, Index, Index place_in_plane) { return static_cast<int>(place_in_plane); }
constexpr int mark_of(NoMark, Index, Index) { return 0; }
inline void store(NoMark*, Integers) {}

// Computes row p of a plane. The first maximum wins; a NaN is larger than any number.
template <int Side, class Mark>
void max_row(Pooling const& shape, Index p, float const* x, float* y, Mark* marks) {
  for (Index q = 0; q < shape.columns.output; ++q) {
    bool found = false;
    Vector best = {};
    Integers where = {};
    for_each_tap<Side>(shape, x, p, q, [&](Index tap, Index at, Vector value) {
      Integers const mark = Integers{} + mark_of(Mark{}, tap, at);
      Integers const better = ~(value <= best) & (best == best);
      best = found ? (better ? value : best) : value;
      where = found ? (better ? mark : where) : mark;
      found = true;
    });
    Index const at = (p * shape.columns.output + q) * images;
    if (y) store(y + at, best);
    if (marks) store(marks + at, where);
  }
}

// For windows that tile the image: a row of dy fills Side rows of dx.
template <int Side, class Mark>
void unpool_tiles(Pooling const& shape, Index p, float const* dy, Mark const* marks, float* dx) {
  for (Index q = 0; q < shape.columns.output; ++q) {
    Index const at = (p * shape.columns.output + q) * images;
    Vector const gradient = load(dy + at);
    Integers const where = load(marks + at);
#pragma GCC unroll 2
    for (Index r = 0; r < Side; ++r) {
#pragma GCC unroll 2
      for (Index s = 0; s < Side; ++s) {
        Index const to = (p * Side + r) * shape.columns.input + q * Side + s;
        store(dx + to * images, where == mark_of(Mark{}, r * Side + s, to) ? gradient : Vector{});
      }
    }
  }
}

template <class Mark>
void max_pool_marked(Pooling const& shape, float const* x, float* y, Mark* marks, Share share) {
  bool const two = is_plain(shape, 2);
  Index const x_plane = shape.rows.input * shape.columns.input * images;
  Index const y_plane = shape.rows.output * shape.columns.output * images;
  for (Run run : Runs(shape.channels, shape.rows.output, share)) {
    Index const at = run.plane * y_plane + run.lane;
    for (Index p = run.lines.first; p < run.lines.last; ++p)
      (two ? max_row<2, Mark> : max_row<0, Mark>)(shape, p, x + run.plane * x_plane + run.lane,
                                                  y ? y + at : nullptr, marks ? marks + at : nullptr);
  }
}

template <class Mark>
void max_unpool_marked(Pooling const& shape, float const* dy, Mark const* marks, float* dx, Share share) {
  bool const two = is_tiled(shape, 2);
  Index const x_plane = shape.rows.input * shape.columns.input * images;
  Index const y_plane = shape.rows.output * shape.columns.output * images;
  Index const lines = two ? shape.rows.output : shape.rows.input;
  for (Run run : Runs(shape.channels, lines, share)) {
    float const* from = dy + run.plane * y_plane + run.lane;
    Mark const* where = marks + run.plane * y_plane + run.lane;
    float* to = dx + run.plane * x_plane + run.lane;
    for (Index line = run.lines.first; line < run.lines.last; ++line) {
      if (two) {
        unpool_tiles<2>(shape, line, from, where, to);
        continue;
      }
      gather_row(shape, line, to, [&](Index p, Index q) {
        Index const at = (p * shape.columns.output + q) * images;
        Vector const gradient = load(from + at);
        Integers const mark = load(where + at);
        return [gradient, mark](Index tap, Index place_in_plane) {
          return mark == mark_of(Mark{}, tap, place_in_plane) ? gradient : Vector{};
        };
      });
    }
  }
}

inline void max_pool(Pooling const& shape, float const* x, float* y, Marks<unsigned char, int> marks,
                     Share share) {
  if (marks.taps)
    max_pool_marked(shape, x, y, marks.taps, share);
  else if (marks.places)
    max_pool_marked(shape, x, y, marks.places, share);
  else
    max_pool_marked(shape, x, y, static_cast<NoMark*>(nullptr), share);
}

inline void max_unpool(Pooling const& shape, float const* dy, Marks<unsigned char const, int const> marks,
                       float* dx, Share share) {
  if (marks.taps)
    max_unpool_marked(shape, dy, marks.taps, dx, share);
  else
    max_unpool_marked(shape, dy, marks.places, dx, share);
}

}  // namespace
}  // namespace cosmati::cpu::chwn
