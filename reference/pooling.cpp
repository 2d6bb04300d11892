// Pooling, Kirk and Hwu's figure 16.5 with strides, padding, dilation and three modes, and its gradient.
#include <cmath>

#include "reference/elements.h"
#include "reference/reference.h"
#include "reference/window.h"

namespace cosmati::reference {
namespace {

struct Windows {
  WindowAxis rows;
  WindowAxis columns;
  explicit Windows(PoolingProblem const& problem) : rows(axis(problem, 0)), columns(axis(problem, 1)) {}

  static WindowAxis axis(PoolingProblem const& p, int i) {
    return {p.x.extent(2 + i), p.y.extent(2 + i), p.window[i], p.stride[i], p.pad_begin[i], p.dilation[i]};
  }
  // Calls visit(r, s, h, w) for each tap of window (p, q) that lies inside the image.
  template <class Visit>
  void for_each_tap(Index p, Index q, Visit const& visit) const {
    for (Index r = 0; r < rows.taps; ++r)
      for (Index s = 0; s < columns.taps; ++s) {
        Index const h = rows.place(p, r);
        Index const w = columns.place(q, s);
        if (rows.inside(h) && columns.inside(w)) visit(r, s, h, w);
      }
  }
  // Calls visit(r, s, p, q) for each window (p, q) whose tap (r, s) lies at (h, w).
  template <class Visit>
  void for_each_window(Index h, Index w, Visit const& visit) const {
    for (Index r = 0; r < rows.taps; ++r)
      for (Index s = 0; s < columns.taps; ++s) {
        Index const p = rows.window_at(h, r);
        Index const q = columns.window_at(w, s);
        if (p >= 0 && q >= 0) visit(r, s, p, q);
      }
  }
};

struct Maximum {
  double value = 0;
  Index r = -1, s = -1, h = -1, w = -1;
};

// The first maximum of a window in order of (r, s); a NaN is larger than any number.
Maximum maximum(Windows const& windows, Input const& x, Index n, Index c, Index p, Index q) {
  Maximum best;
  windows.for_each_tap(p, q, [&](Index r, Index s, Index h, Index w) {
    double const value = x(n, c, h, w);
    bool const larger = value > best.value || (std::isnan(value) && !std::isnan(best.value));
    if (best.r < 0 || larger) best = {value, r, s, h, w};
  });
  return best;
}

Index taps_in_padded_image(WindowAxis const& axis, Index pad_end, Index window) {
  Index count = 0;
  for (Index tap = 0; tap < axis.taps; ++tap) count += axis.place(window, tap) < axis.image + pad_end ? 1 : 0;
  return count;
}

// The divisor of the sum of a window's taps.
double divisor(PoolingProblem const& problem, Windows const& windows, Index p, Index q) {
  if (problem.mode == PoolingMode::average_with_padding)
    return static_cast<double>(taps_in_padded_image(windows.rows, problem.pad_end[0], p) *
                               taps_in_padded_image(windows.columns, problem.pad_end[1], q));
  Index count = 0;
  windows.for_each_tap(p, q, [&](Index, Index, Index, Index) { ++count; });
  return static_cast<double>(count);
}

// y[n, c, p, q] = max of x[n, c, h, w]
void forward_max(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  Output const indices(problem.indices, arguments.indices);
  for_each_index(y.shape(), [&](Position const& at) {
    Maximum const best = maximum(windows, x, at[0], at[1], at[2], at[3]);
    y(at) = best.value;
    if (!problem.indices.present()) return;
    bool const tap = problem.indices.type == DataType::u8;
    indices(at) = static_cast<double>(tap ? best.r * windows.columns.taps + best.s
                                          : best.h * windows.columns.image + best.w);
  });
}

// y[n, c, p, q] = sum of x[n, c, h, w] / divisor
void forward_average(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  for_each_index(y.shape(), [&](Position const& at) {
    double sum = 0;
    windows.for_each_tap(at[2], at[3], [&](Index, Index, Index h, Index w) { sum += x(at[0], at[1], h, w); });
    y(at) = sum / divisor(problem, windows, at[2], at[3]);
  });
}

// dx[n, c, h, w] = sum of dy[n, c, p, q] over the windows (p, q) whose maximum lies at (h, w)
void backward_max(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const x(problem.x, arguments.x);
  Input const dy(problem.y, arguments.dy);
  Input const indices(problem.indices, arguments.saved_indices);
  Output const dx(problem.x, arguments.dx);
  for_each_index(dx.shape(), [&](Position const& at) {
    Index const n = at[0], c = at[1], h = at[2], w = at[3];
    auto const is_maximum = [&](Index r, Index s, Index p, Index q) {
      if (problem.backward_needs_x()) {
        Maximum const best = maximum(windows, x, n, c, p, q);
        return best.r == r && best.s == s;
      }
      bool const tap = problem.indices.type == DataType::u8;
      return indices.integer(n, c, p, q) ==
             (tap ? r * windows.columns.taps + s : h * windows.columns.image + w);
    };
    double sum = 0;
    windows.for_each_window(h, w, [&](Index r, Index s, Index p, Index q) {
      if (is_maximum(r, s, p, q)) sum += dy(n, c, p, q);
    });
    dx(at) = sum;
  });
}

// dx[n, c, h, w] = sum of dy[n, c, p, q] / divisor over the windows (p, q) that contain (h, w)
void backward_average(PoolingProblem const& problem, PoolingProblem::Arguments const& arguments) {
  Windows const windows(problem);
  Input const dy(problem.y, arguments.dy);
  Output const dx(problem.x, arguments.dx);
  for_each_index(dx.shape(), [&](Position const& at) {
    double sum = 0;
    windows.for_each_window(at[2], at[3], [&](Index, Index, Index p, Index q) {
      sum += dy(at[0], at[1], p, q) / divisor(problem, windows, p, q);
    });
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
