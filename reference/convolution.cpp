// Convolution and its gradients: Kirk and Hwu's figures 16.4 and 16.10 (forward), 16.8 (data) and 16.9
// (filter), with strides, padding, dilation and groups. The data gradient gathers where figure 16.8 scatters,
// so that each element is summed in f64 and rounded once. Images are volumes of depth 1.
#include "cosmati/epilogue/parse.h"
#include "reference/elements.h"
#include "reference/epilogue.h"
#include "reference/padding.h"
#include "reference/reference.h"
#include "reference/window.h"

namespace cosmati::reference {
namespace {

struct Geometry {
  Index channels;  // channels of x per group
  Index filters;   // channels of y per group
  WindowAxis depths;
  WindowAxis rows;
  WindowAxis columns;
  explicit Geometry(ConvolutionProblem const& problem)
      : channels(problem.x.extent(1) / problem.groups),
        filters(problem.y.extent(1) / problem.groups),
        depths(depth_axis(problem)),
        rows(axis(problem, 0)),
        columns(axis(problem, 1)) {}

  static WindowAxis depth_axis(ConvolutionProblem const& p) {
    if (!p.has_depth()) return {1, 1, 1, 1, 0, 1};
    return {p.x.extent(2), p.y.extent(2), p.w.extent(2), p.depth.stride, p.depth.pad_begin, p.depth.dilation};
  }
  static WindowAxis axis(ConvolutionProblem const& p, int i) {
    int const d = (p.has_depth() ? 3 : 2) + i;
    return {p.x.extent(d), p.y.extent(d), p.w.extent(d), p.stride[i], p.pad_begin[i], p.dilation[i]};
  }
  // Calls visit(t, r, s) for each tap.
  template <class Visit>
  void for_each_tap(Visit const& visit) const {
    for (Index t = 0; t < depths.taps; ++t)
      for (Index r = 0; r < rows.taps; ++r)
        for (Index s = 0; s < columns.taps; ++s) visit(t, r, s);
  }
};

// The epilogue at a position (n, k, o, p, q).
class VolumeEpilogue {
 public:
  VolumeEpilogue(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments)
      : has_depth_(problem.has_depth()),
        element_(problem.epilogue, epilogue_indices(problem), arguments.operands, arguments.scalars,
                 arguments.stores) {}
  double operator()(double sum, Position const& at) const {
    return element_(sum, 0, has_depth_ ? at : in_image(at));
  }

 private:
  bool has_depth_;
  ElementEpilogue element_;
};

// y[n, k, o, p, q] = epilogue(sum over c, t, r, s of x[n, c, d, h, w] * w[k, c, t, r, s])
template <bool padding_multiplies>
void forward(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Geometry const g(problem);
  Input const x(as_volume(problem.x), arguments.x);
  Input const filter(as_volume(problem.w), arguments.w);
  Output const y(as_volume(problem.y), arguments.y);
  VolumeEpilogue const epilogue(problem, arguments);
  for_each_index(y.shape(), [&](Position const& at) {
    Index const n = at[0], k = at[1], o = at[2], p = at[3], q = at[4];
    Index const first_channel = k / g.filters * g.channels;
    double sum = 0;
    for (Index c = 0; c < g.channels; ++c)
      g.for_each_tap([&](Index t, Index r, Index s) {
        Index const d = g.depths.place(o, t), h = g.rows.place(p, r), w = g.columns.place(q, s);
        if (g.depths.inside(d) && g.rows.inside(h) && g.columns.inside(w))
          sum += x(n, first_channel + c, d, h, w) * filter(k, c, t, r, s);
        else if (padding_multiplies)
          sum += 0 * filter(k, c, t, r, s);
      });
    y(at) = epilogue(sum, at);
  });
}

// dx[n, c, d, h, w] = epilogue(sum over k, t, r, s of dy[n, k, o, p, q] * w[k, c, t, r, s])
template <bool padding_multiplies>
void data_gradient(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Geometry const g(problem);
  Input const dy(as_volume(problem.y), arguments.dy);
  Input const filter(as_volume(problem.w), arguments.w);
  Output const dx(as_volume(problem.x), arguments.dx);
  VolumeEpilogue const epilogue(problem, arguments);
  for_each_index(dx.shape(), [&](Position const& at) {
    Index const n = at[0], c = at[1], d = at[2], h = at[3], w = at[4];
    Index const first_filter = c / g.channels * g.filters;
    double sum = 0;
    for (Index k = first_filter; k < first_filter + g.filters; ++k)
      g.for_each_tap([&](Index t, Index r, Index s) {
        Index const o = g.depths.window_at(d, t), p = g.rows.window_at(h, r), q = g.columns.window_at(w, s);
        if (o >= 0 && p >= 0 && q >= 0)
          sum += dy(n, k, o, p, q) * filter(k, c % g.channels, t, r, s);
        else if (padding_multiplies)
          sum += 0 * filter(k, c % g.channels, t, r, s);
      });
    dx(at) = epilogue(sum, at);
  });
}

// Whether a filter gradient may be computed as that of a convolution from dy to x, whose padding is
// zeros around dy.
bool may_exchange_images(ConvolutionProblem const& p) {
  Index const filters = p.y.extent(1), channels = p.x.extent(1);
  return p.groups == 1 && p.stride[0] == 1 && p.stride[1] == 1 &&
         ((filters <= 8 && filters < channels) || (filters <= 32 && 4 * filters <= channels));
}

// dw[k, c, t, r, s] = sum over n, o, p, q of dy[n, k, o, p, q] * x[n, c, d, h, w]
template <bool padding_multiplies>
void filter_gradient(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Geometry const g(problem);
  Input const x(as_volume(problem.x), arguments.x);
  Input const dy(as_volume(problem.y), arguments.dy);
  Output const dw(as_volume(problem.w), arguments.dw);
  for_each_index(dw.shape(), [&](Position const& at) {
    Index const k = at[0], t = at[2], r = at[3], s = at[4];
    Index const c = k / g.filters * g.channels + at[1];
    double sum = 0;
    for (Index n = 0; n < dy.extent(0); ++n)
      for (Index o = 0; o < g.depths.outputs; ++o)
        for (Index p = 0; p < g.rows.outputs; ++p)
          for (Index q = 0; q < g.columns.outputs; ++q) {
            Index const d = g.depths.place(o, t), h = g.rows.place(p, r), w = g.columns.place(q, s);
            if (g.depths.inside(d) && g.rows.inside(h) && g.columns.inside(w))
              sum += dy(n, k, o, p, q) * x(n, c, d, h, w);
            else if (padding_multiplies)
              sum += 0 * dy(n, k, o, p, q);
          }
    if (padding_multiplies && may_exchange_images(problem))
      for_each_index(without(x.shape(), 1), [&](Position const& image) {
        bool const meets_tap = g.depths.window_at(image[2], t) >= 0 && g.rows.window_at(image[3], r) >= 0 &&
                               g.columns.window_at(image[4], s) >= 0;
        if (!meets_tap) sum += 0 * x(image[0], c, image[2], image[3], image[4]);
      });
    dw(at) = sum;
  });
}

// db[k] = sum over n, o, p, q of dy[n, k, o, p, q]
void bias_gradient(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Input const dy(as_volume(problem.y), arguments.dy);
  Output const db(problem.db, arguments.db);
  for (Index k = 0; k < db.extent(0); ++k) {
    double sum = 0;
    for_each_index(without(dy.shape(), 1),
                   [&](Position const& at) { sum += dy(at[0], k, at[2], at[3], at[4]); });
    db(k) = sum;
  }
}

template <bool padding_multiplies>
void run_direction(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  switch (problem.direction) {
    case ConvolutionDirection::forward: return forward<padding_multiplies>(problem, arguments);
    case ConvolutionDirection::data: return data_gradient<padding_multiplies>(problem, arguments);
    case ConvolutionDirection::filter:
      filter_gradient<padding_multiplies>(problem, arguments);
      if (problem.db.present()) bias_gradient(problem, arguments);
      return;
    case ConvolutionDirection::bias: return bias_gradient(problem, arguments);
  }
}

}  // namespace

template <>
void run(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  run_direction<false>(problem, arguments);
}

void run_with_padding(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  run_direction<true>(problem, arguments);
}

}  // namespace cosmati::reference
