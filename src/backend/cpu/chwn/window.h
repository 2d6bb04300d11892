// The taps of a pooling window that are inside the image, and the windows for which all are.
#pragma once

#include "src/backend/cpu/chwn/vector.h"

namespace cosmati::cpu::chwn {
namespace {

constexpr Index place(Axis const& axis, Index output, Index tap) {
  return output * axis.stride + tap * axis.dilation - axis.pad_begin;
}

constexpr bool is_inside(Axis const& axis, Index position) { return position >= 0 && position < axis.input; }

// Returns the output whose tap is at `position`, or -1.
constexpr Index output_at(Axis const& axis, Index position, Index tap) {
  Index const distance = position + axis.pad_begin - tap * axis.dilation;
  if (distance < 0) return -1;
  Index const output = axis.stride == 1 ? distance : distance / axis.stride;
  return output * axis.stride == distance && output < axis.output ? output : -1;
}

// Returns the number of taps by which an average divides: in the image, or in the padded image.
constexpr Index counted_taps(Axis const& axis, Index output, bool with_padding) {
  Index const start = place(axis, output, 0);
  Index const end = axis.input + (with_padding ? axis.pad_end : 0);
  Index const first = with_padding || start >= 0 ? 0 : (axis.dilation - 1 - start) / axis.dilation;
  Index const last = start >= end ? 0 : smaller(axis.taps, (end - 1 - start) / axis.dilation + 1);
  return last > first ? last - first : 0;
}

// `side` adjacent taps, and every window inside the image.
constexpr bool is_plain(Axis const& axis, Index side) {
  return axis.taps == side && axis.dilation == 1 && axis.pad_begin == 0 &&
         (axis.output - 1) * axis.stride + side <= axis.input;
}
constexpr bool is_plain(Pooling const& shape, Index side) {
  return is_plain(shape.rows, side) && is_plain(shape.columns, side);
}

// The same, and every element of the image is in exactly one window.
constexpr bool is_tiled(Axis const& axis, Index side) {
  return is_plain(axis, side) && axis.stride == side && axis.output * side == axis.input;
}
constexpr bool is_tiled(Pooling const& shape, Index side) {
  return is_tiled(shape.rows, side) && is_tiled(shape.columns, side);
}

// Calls visit(tap in the window, position in the image plane, vector) for the taps of window (p, q) inside
// the image, in order. Side is the extent of a plain window, or 0; `x` is a plane.
template <int Side, class Visit>
inline void for_each_tap(Pooling const& shape, float const* x, Index p, Index q, Visit const& visit) {
  Index const height = Side ? Side : shape.rows.taps;
  Index const width_of_window = Side ? Side : shape.columns.taps;
#pragma GCC unroll 2
  for (Index r = 0; r < height; ++r) {
    Index const h = Side ? p * shape.rows.stride + r : place(shape.rows, p, r);
    if (!Side && !is_inside(shape.rows, h)) continue;
#pragma GCC unroll 2
    for (Index s = 0; s < width_of_window; ++s) {
      Index const w = Side ? q * shape.columns.stride + s : place(shape.columns, q, s);
      if (!Side && !is_inside(shape.columns, w)) continue;
      Index const at = h * shape.columns.input + w;
      visit(r * width_of_window + s, at, load(x + at * images));
    }
  }
}

// Sets row h of a plane of dx to a sum over the windows that contain it: window(p, q) is called once for a
// row of taps and returns part(tap in the window, position in the image plane), the contribution to each
// element.
template <class Window>
inline void gather_row(Pooling const& shape, Index h, float* dx, Window const& window) {
  Index const row = h * shape.columns.input;
  for (Index w = 0; w < shape.columns.input; ++w) store(dx + (row + w) * images, Vector{});
  for (Index r = 0; r < shape.rows.taps; ++r) {
    Index const p = output_at(shape.rows, h, r);
    if (p < 0) continue;
    for (Index q = 0; q < shape.columns.output; ++q) {
      auto const part = window(p, q);
      for (Index s = 0; s < shape.columns.taps; ++s) {
        Index const w = place(shape.columns, q, s);
        if (!is_inside(shape.columns, w)) continue;
        float* to = dx + (row + w) * images;
        store(to, load(to) + part(r * shape.columns.taps + s, row + w));
      }
    }
  }
}

}  // namespace
}  // namespace cosmati::cpu::chwn
