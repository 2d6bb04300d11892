// Pooling, Kirk and Hwu's figure 16.5 with strides, padding, dilation and three modes, and its gradient.
// Images are volumes of depth 1.
#include <cmath>

#include "reference/elements.h"
#include "reference/reference.h"
#include "reference/window.h"

namespace cosmati::reference {
namespace {

struct Windows {
  WindowAxis depths;
  WindowAxis rows;
  WindowAxis columns;
  explicit Windows(PoolingProblem const& problem)
      : depths(depth_axis(problem)), rows(axis(problem, 0)), columns(axis(problem, 1)) {}

  static WindowAxis depth_axis(PoolingProblem const& p) {
    if (!p.has_depth()) return {1, 1, 1, 1, 0, 1};
    auto const& depth = p.depth;
    return {p.x.extent(2), p.y.extent(2), depth.window, depth.stride, depth.pad_begin, depth.dilation};
  }
  static WindowAxis axis(PoolingProblem const& p, int i) {
    int const d = (p.has_depth() ? 3 : 2) + i;
    return {p.x.extent(d), p.y.extent(d), p.window[i], p.stride[i], p.pad_begin[i], p.dilation[i]};
  }
  Index tap_number(Index t, Index r, Index s) const { return (t * rows.taps + r) * columns.taps + s; }
  Index place_number(Index d, Index h, Index w) const { return (d * rows.image + h) * columns.image + w; }

  // Calls visit(tap number, d, h, w) for each tap of the window at (n, c, o, p, q) that lies inside the
  // image.
  template <class Visit>
  void for_each_tap(Position const& window, Visit const& visit) const {
    for (Index t = 0; t < depths.taps; ++t)
      for (Index r = 0; r < rows.taps; ++r)
        for (Index s = 0; s < columns.taps; ++s) {
          Index const d = depths.place(window[2], t);
          Index const h = rows.place(window[3], r);
          Index const w = columns.place(window[4], s);
          if (depths.inside(d) && rows.inside(h) && columns.inside(w)) visit(tap_number(t, r, s), d, h, w);
        }
  }
  // Calls visit(tap number, window) for each window whose tap lies at (n, c, d, h, w).
  template <class Visit>
  void for_each_window(Position const& at, Visit const& visit) const {
    for (Index t = 0; t < depths.taps; ++t)
      for (Index r = 0; r < rows.taps; ++r)
        for (Index s = 0; s < columns.taps; ++s) {
          Position window = at;
          window[2] = depths.window_at(at[2], t);
          window[3] = rows.window_at(at[3], r);
          window[4] = columns.window_at(at[4], s);
          if (window[2] >= 0 && window[3] >= 0 && window[4] >= 0) visit(tap_number(t, r, s), window);
        }
  }
};

struct Maximum {
  double value = 0;
  Index tap = -1, place = -1;
};

// The first maximum of a window in order of (t, r, s); a NaN is larger than any number.
Maximum maximum(Windows const& windows, Input const& x, Position const& window) {
  Maximum best;
  windows.for_each_tap(window, [&](Index tap, Index d, Index h, Index w) {
    double const value = x(window[0], window[1], d, h, w);
    bool const larger = value > best.value || (std::isnan(value) && !std::isnan(best.value));
    if (best.tap < 0 || larger) best = {value, tap, windows.place_number(d, h, w)};
  });
  return best;
}

Index taps_in_padded_image(WindowAxis const& axis, Index pad_end, Index window) {
  Index count = 0;
  for (Index tap = 0; tap < axis.taps; ++tap) count += axis.place(window, tap) < axis.image + pad_end ? 1 : 0;
  return count;
}

// The divisor of the sum of a window's taps.
double divisor(PoolingProblem const& problem, Windows const& windows, Position const& window) {
  if (problem.mode == PoolingMode::average_with_padding)
    return static_cast<double>(taps_in_padded_image(windows.depths, problem.depth.pad_end, window[2]) *
                               taps_in_padded_image(windows.rows, problem.pad_end[0], window[3]) *
                               taps_in_padded_image(windows.columns, problem.pad_end[1], window[4]));
  Index count = 0;
  windows.for_each_tap(window, [&](Index, Index, Index, Index) { ++count; });
  return static_cast<double>(count);
}

// y[n, c, o, p, q] = max of x[n, c, d, h, w]
void forward_max(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const x(as_volume(problem.x), arguments.x);
  Output const y(as_volume(problem.y), arguments.y);
  Output const indices(as_volume(problem.indices), arguments.indices);
  for_each_index(y.shape(), [&](Position const& at) {
    Maximum const best = maximum(windows, x, at);
    y(at) = best.value;
    if (!problem.indices.present()) return;
    indices(at) = static_cast<double>(problem.indices.type == DataType::u8 ? best.tap : best.place);
  });
}

// y[n, c, o, p, q] = sum of x[n, c, d, h, w] / divisor
void forward_average(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const x(as_volume(problem.x), arguments.x);
  Output const y(as_volume(problem.y), arguments.y);
  for_each_index(y.shape(), [&](Position const& at) {
    double sum = 0;
    windows.for_each_tap(at, [&](Index, Index d, Index h, Index w) { sum += x(at[0], at[1], d, h, w); });
    y(at) = sum / divisor(problem, windows, at);
  });
}

// dx[n, c, d, h, w] = sum of dy[n, c, o, p, q] over the windows (o, p, q) whose maximum lies at (d, h, w)
void backward_max(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const x(as_volume(problem.x), arguments.x);
  Input const dy(as_volume(problem.y), arguments.dy);
  Input const indices(as_volume(problem.indices), arguments.saved_indices);
  Output const dx(as_volume(problem.x), arguments.dx);
  for_each_index(dx.shape(), [&](Position const& at) {
    Index const place = windows.place_number(at[2], at[3], at[4]);
    auto const is_maximum = [&](Index tap, Position const& window) {
      if (problem.backward_needs_x()) return maximum(windows, x, window).tap == tap;
      auto const saved = static_cast<Index>(indices(window));
      return saved == (problem.indices.type == DataType::u8 ? tap : place);
    };
    double sum = 0;
    windows.for_each_window(at, [&](Index tap, Position const& window) {
      if (is_maximum(tap, window)) sum += dy(window);
    });
    dx(at) = sum;
  });
}

// dx[n, c, d, h, w] = sum of dy[n, c, o, p, q] / divisor over the windows (o, p, q) that contain (d, h, w)
void backward_average(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const dy(as_volume(problem.y), arguments.dy);
  Output const dx(as_volume(problem.x), arguments.dx);
  for_each_index(dx.shape(), [&](Position const& at) {
    double sum = 0;
    windows.for_each_window(
        at, [&](Index, Position const& window) { sum += dy(window) / divisor(problem, windows, window); });
    dx(at) = sum;
  });
}

}  // namespace

template <>
void run(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  bool const max = problem.mode == PoolingMode::max;
  if (problem.direction == Direction::forward)
    max ? forward_max(problem, arguments) : forward_average(problem, arguments);
  else
    max ? backward_max(problem, arguments) : backward_average(problem, arguments);
}

}  // namespace cosmati::reference
