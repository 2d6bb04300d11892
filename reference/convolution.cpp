// Convolution and its gradients: Kirk and Hwu's figures 16.4 and 16.10 (forward), 16.8 (data) and 16.9
// (filter), with strides, padding, dilation and groups. The data gradient gathers where figure 16.8 scatters,
// so that each element is summed in f64 and rounded once.
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
  WindowAxis rows;
  WindowAxis columns;
  explicit Geometry(ConvolutionProblem const& problem)
      : channels(problem.x.extent(1) / problem.groups),
        filters(problem.y.extent(1) / problem.groups),
        rows(axis(problem, 0)),
        columns(axis(problem, 1)) {}

  static WindowAxis axis(ConvolutionProblem const& p, int i) {
    return {p.x.extent(2 + i), p.y.extent(2 + i), p.w.extent(2 + i),
            p.stride[i],       p.pad_begin[i],    p.dilation[i]};
  }
};

ElementEpilogue epilogue_of(ConvolutionProblem const& problem,
                            ConvolutionProblem::Arguments const& arguments) {
  return ElementEpilogue(problem.epilogue, epilogue::convolution_indices, arguments.operands,
                         arguments.scalars, arguments.stores);
}

// y[n, k, p, q] = epilogue(sum over c, r, s of x[n, c, h, w] * w[k, c, r, s])
template <bool padding_multiplies>
void forward(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Geometry const g(problem);
  Input const x(problem.x, arguments.x);
  Input const filter(problem.w, arguments.w);
  Output const y(problem.y, arguments.y);
  ElementEpilogue const epilogue = epilogue_of(problem, arguments);
  for_each_index(y.shape(), [&](Position const& at) {
    Index const n = at[0], k = at[1], p = at[2], q = at[3];
    Index const first_channel = k / g.filters * g.channels;
    double sum = 0;
    for (Index c = 0; c < g.channels; ++c)
      for (Index r = 0; r < g.rows.taps; ++r)
        for (Index s = 0; s < g.columns.taps; ++s) {
          Index const h = g.rows.place(p, r);
          Index const w = g.columns.place(q, s);
          if (g.rows.inside(h) && g.columns.inside(w))
            sum += x(n, first_channel + c, h, w) * filter(k, c, r, s);
          else if (padding_multiplies)
            sum += 0 * filter(k, c, r, s);
        }
    y(at) = epilogue(sum, 0, at);
  });
}

// dx[n, c, h, w] = epilogue(sum over k, r, s of dy[n, k, p, q] * w[k, c, r, s])
template <bool padding_multiplies>
void data_gradient(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Geometry const g(problem);
  Input const dy(problem.y, arguments.dy);
  Input const filter(problem.w, arguments.w);
  Output const dx(problem.x, arguments.dx);
  ElementEpilogue const epilogue = epilogue_of(problem, arguments);
  for_each_index(dx.shape(), [&](Position const& at) {
    Index const n = at[0], c = at[1], h = at[2], w = at[3];
    Index const first_filter = c / g.channels * g.filters;
    double sum = 0;
    for (Index k = first_filter; k < first_filter + g.filters; ++k)
      for (Index r = 0; r < g.rows.taps; ++r)
        for (Index s = 0; s < g.columns.taps; ++s) {
          Index const p = g.rows.window_at(h, r);
          Index const q = g.columns.window_at(w, s);
          if (p >= 0 && q >= 0)
            sum += dy(n, k, p, q) * filter(k, c % g.channels, r, s);
          else if (padding_multiplies)
            sum += 0 * filter(k, c % g.channels, r, s);
        }
    dx(at) = epilogue(sum, 0, at);
  });
}

// dw[k, c, r, s] = sum over n, p, q of dy[n, k, p, q] * x[n, c, h, w]
template <bool padding_multiplies>
void filter_gradient(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Geometry const g(problem);
  Input const x(problem.x, arguments.x);
  Input const dy(problem.y, arguments.dy);
  Output const dw(problem.w, arguments.dw);
  for_each_index(dw.shape(), [&](Position const& at) {
    Index const k = at[0], r = at[2], s = at[3];
    Index const c = k / g.filters * g.channels + at[1];
    double sum = 0;
    for (Index n = 0; n < dy.extent(0); ++n)
      for (Index p = 0; p < g.rows.outputs; ++p)
        for (Index q = 0; q < g.columns.outputs; ++q) {
          Index const h = g.rows.place(p, r);
          Index const w = g.columns.place(q, s);
          if (g.rows.inside(h) && g.columns.inside(w))
            sum += dy(n, k, p, q) * x(n, c, h, w);
          else if (padding_multiplies)
            sum += 0 * dy(n, k, p, q);
        }
    dw(at) = sum;
  });
}

// db[k] = sum over n, p, q of dy[n, k, p, q]
void bias_gradient(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Input const dy(problem.y, arguments.dy);
  Output const db(problem.db, arguments.db);
  for (Index k = 0; k < db.extent(0); ++k) {
    double sum = 0;
    for_each_index(without(dy.shape(), 1), [&](Position const& at) { sum += dy(at[0], k, at[2], at[3]); });
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
