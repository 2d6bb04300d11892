// Batch normalization (Ioffe and Szegedy 2015, algorithm 1), layer normalization (Ba, Kiros and Hinton 2016),
// RMS normalization (Zhang and Sennrich 2019) and local response normalization (Krizhevsky et
// al. 2012, section 3.3, with alpha divided by the size as in ONNX).
#include <algorithm>
#include <cmath>

#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {
namespace {

// Calls visit(position) for every element of channel c.
template <class Visit>
void for_each_in_channel(Shape const& shape, Index c, Visit const& visit) {
  for_each_index(without(shape, 1), [&](Position position) {
    position[1] = c;
    visit(position);
  });
}

// mean[c] = sum of x / count
double mean_of(Input const& x, Index c) {
  double sum = 0;
  for_each_in_channel(x.shape(), c, [&](Position const& at) { sum += x(at); });
  return sum / static_cast<double>(without(x.shape(), 1).size());
}

// variance[c] = sum of (x - mean)^2 / count
double variance_of(Input const& x, Index c, double mean) {
  double sum = 0;
  for_each_in_channel(x.shape(), c, [&](Position const& at) { sum += (x(at) - mean) * (x(at) - mean); });
  return sum / static_cast<double>(without(x.shape(), 1).size());
}

// Returns f(z).
double activate(BatchNormProblem const& problem, double z) {
  return z < 0 ? (problem.slope == 0 ? 0 : problem.slope * z) : z;
}

// Returns f'(z); at 0 the left derivative, as in activation.cpp.
double activation_derivative(BatchNormProblem const& problem, double z) {
  if (!problem.has_activation()) return 1;
  return std::isnan(z) ? z : z > 0 ? 1 : problem.slope;
}

// y = f((x - mean) / sqrt(variance + epsilon) * scale + bias)
void normalize(BatchNormProblem const& problem, BatchNormProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Input const scale(problem.statistics, arguments.scale);
  Input const bias(problem.statistics, arguments.bias);
  Input const mean(problem.statistics, arguments.mean);
  Input const variance(problem.statistics, arguments.variance);
  Output const saved_mean(problem.statistics, arguments.saved_mean);
  Output const saved_variance(problem.statistics, arguments.saved_variance);
  Output const y(problem.y, arguments.y);
  bool const training = problem.mode == BatchNormMode::training;
  for (Index c = 0; c < x.extent(1); ++c) {
    double const m = training ? mean_of(x, c) : mean(c);
    double const v = training ? variance_of(x, c, m) : variance(c);
    double const factor = scale(c) / std::sqrt(v + problem.epsilon);
    double const shift = bias(c);
    for_each_in_channel(x.shape(), c,
                        [&](Position const& at) { y(at) = activate(problem, (x(at) - m) * factor + shift); });
    if (training) {
      saved_mean(c) = m;
      saved_variance(c) = v;
    }
  }
}

// With u = (x - mean) / sqrt(variance + epsilon), g = dy * f'(u * scale + bias) and means over all dimensions
// but c: dbias = sum of g; dscale = sum of g * u;
// dx = scale / sqrt(variance + epsilon) * (g - mean of g - u * mean of g * u)
void backward(BatchNormProblem const& problem, BatchNormProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Input const dy(problem.y, arguments.dy);
  Input const scale(problem.statistics, arguments.scale);
  Input const bias(problem.statistics, arguments.bias);
  Input const mean(problem.statistics, arguments.mean);
  Input const variance(problem.statistics, arguments.variance);
  Output const dx(problem.dx, arguments.dx);
  Output const dscale(problem.statistics, arguments.dscale);
  Output const dbias(problem.statistics, arguments.dbias);
  double const count = static_cast<double>(without(x.shape(), 1).size());
  for (Index c = 0; c < x.extent(1); ++c) {
    double const m = mean(c);
    double const inverse_deviation = 1 / std::sqrt(variance(c) + problem.epsilon);
    double const factor = scale(c) * inverse_deviation;
    double const shift = problem.has_activation() ? bias(c) : 0;
    auto const g = [&](Position const& at) {
      return dy(at) * activation_derivative(problem, (x(at) - m) * factor + shift);
    };
    double sum = 0, sum_with_u = 0;
    for_each_in_channel(x.shape(), c, [&](Position const& at) {
      sum += g(at);
      sum_with_u += g(at) * (x(at) - m) * inverse_deviation;
    });
    for_each_in_channel(x.shape(), c, [&](Position const& at) {
      double const u = (x(at) - m) * inverse_deviation;
      dx(at) = factor * (g(at) - sum / count - u * sum_with_u / count);
    });
    dscale(c) = sum_with_u;
    dbias(c) = sum;
  }
}

// Calls visit(position) for each element of a row.
template <class Visit>
void for_each_in_row(RowNormProblem const& problem, Position const& row, Visit const& visit) {
  Shape shape = problem.x.shape();
  for (int d = 0; d < problem.axis; ++d) shape[d] = 1;
  for_each_index(shape, [&](Position at) {
    for (int d = 0; d < problem.axis; ++d) at[d] = row[d];
    visit(static_cast<Position const&>(at));
  });
}

Shape rows_of(RowNormProblem const& problem) {
  Shape shape = problem.x.shape();
  for (int d = problem.axis; d < shape.rank; ++d) shape[d] = 1;
  return shape;
}

// y = (x - mean) * inverse * weight + bias; for RMS normalization the mean is 0
void normalize_rows(RowNormProblem const& problem, RowNormProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x), weight(problem.weight, arguments.weight),
      bias(problem.bias, arguments.bias);
  Output const y(problem.y, arguments.y), saved_mean(problem.statistics, arguments.saved_mean),
      saved_inverse(problem.statistics, arguments.saved_inverse);
  Shape const rows = rows_of(problem);
  double const count = static_cast<double>(problem.x.layout.size() / std::max<Index>(rows.size(), 1));
  for_each_index(rows, [&](Position const& row) {
    double sum = 0, squares = 0;
    if (problem.centered()) for_each_in_row(problem, row, [&](Position const& at) { sum += x(at); });
    double const mean = sum / count;
    for_each_in_row(problem, row, [&](Position const& at) { squares += (x(at) - mean) * (x(at) - mean); });
    double const inverse = 1 / std::sqrt(squares / count + problem.epsilon);
    for_each_in_row(problem, row, [&](Position const& at) {
      y(at) = (x(at) - mean) * inverse * (problem.weight.present() ? weight(at) : 1) +
              (problem.bias.present() ? bias(at) : 0);
    });
    if (!problem.statistics.present()) return;
    if (problem.centered()) saved_mean(row) = mean;
    saved_inverse(row) = inverse;
  });
}

// With u = (x - mean) * inverse and g = dy * weight: dx = inverse * (g - mean of g - u * mean of g*u), where
// RMS normalization omits the mean of g; dweight = sum of dy * u and dbias = sum of dy over the rows
void normalize_rows_backward(RowNormProblem const& problem, RowNormProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x), dy(problem.y, arguments.dy),
      weight(problem.weight, arguments.weight), mean(problem.statistics, arguments.mean),
      inverse(problem.statistics, arguments.inverse);
  Output const dx(problem.dx, arguments.dx), dweight(problem.dweight, arguments.dweight),
      dbias(problem.dbias, arguments.dbias);
  Shape const rows = rows_of(problem);
  double const count = static_cast<double>(problem.x.layout.size() / std::max<Index>(rows.size(), 1));
  auto const u = [&](Position const& at) {
    return (x(at) - (problem.centered() ? mean(at) : 0)) * inverse(at);
  };
  auto const g = [&](Position const& at) { return dy(at) * (problem.weight.present() ? weight(at) : 1); };
  for_each_index(rows, [&](Position const& row) {
    double sum = 0, sum_with_u = 0;
    for_each_in_row(problem, row, [&](Position const& at) {
      if (problem.centered()) sum += g(at);
      sum_with_u += g(at) * u(at);
    });
    for_each_in_row(problem, row, [&](Position const& at) {
      dx(at) = inverse(row) * (g(at) - sum / count - u(at) * (sum_with_u / count));
    });
  });
  // One parameter at a time, so that each of its sums is in double precision.
  if (!problem.dweight.present() && !problem.dbias.present()) return;
  Shape parameters = x.shape(), others = x.shape();
  for (int d = 0; d < x.shape().rank; ++d) (problem.has_parameters_along(d) ? others : parameters)[d] = 1;
  for_each_index(parameters, [&](Position const& parameter) {
    double sum = 0, sum_with_u = 0;
    for_each_index(others, [&](Position at) {
      for (int d = 0; d < x.shape().rank; ++d) at[d] += parameter[d];
      sum += dy(at);
      sum_with_u += dy(at) * u(at);
    });
    if (problem.dweight.present()) dweight(parameter) = sum_with_u;
    if (problem.dbias.present()) dbias(parameter) = sum;
  });
}

// base = k + alpha / size * sum of x[i]^2 over i in [c - (size-1)/2, c + size/2]
double lrn_base(LrnProblem const& problem, Input const& x, Position at) {
  Index const c = at[1];
  Index const first = std::max<Index>(c - (problem.size - 1) / 2, 0);
  Index const last = std::min<Index>(c + problem.size / 2, x.extent(1) - 1);
  double sum = 0;
  for (at[1] = first; at[1] <= last; ++at[1]) sum += x(at) * x(at);
  return problem.k + problem.alpha / static_cast<double>(problem.size) * sum;
}

// y = x / base^beta
void lrn_forward(LrnProblem const& problem, LrnProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  for_each_index(x.shape(), [&](Position const& at) {
    y(at) = x(at) * std::pow(lrn_base(problem, x, at), -problem.beta);
  });
}

// dx[c] = dy[c] / base[c]^beta - 2*alpha*beta/size * x[c] * sum of dy[i] * x[i] / base[i]^(beta+1) over all i
// whose window contains c: i in [c - size/2, c + (size-1)/2]
void lrn_backward(LrnProblem const& problem, LrnProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Input const dy(problem.y, arguments.dy);
  Output const dx(problem.dx, arguments.dx);
  double const factor = 2 * problem.alpha * problem.beta / static_cast<double>(problem.size);
  for_each_index(x.shape(), [&](Position const& at) {
    Position i = at;
    Index const first = std::max<Index>(at[1] - problem.size / 2, 0);
    Index const last = std::min<Index>(at[1] + (problem.size - 1) / 2, x.extent(1) - 1);
    double sum = 0;
    for (i[1] = first; i[1] <= last; ++i[1])
      sum += dy(i) * x(i) * std::pow(lrn_base(problem, x, i), -problem.beta - 1);
    dx(at) = dy(at) * std::pow(lrn_base(problem, x, at), -problem.beta) - factor * x(at) * sum;
  });
}

}  // namespace

template <>
void run(BatchNormProblem const& problem, BatchNormProblem::Arguments const& arguments) {
  problem.mode == BatchNormMode::backward ? backward(problem, arguments) : normalize(problem, arguments);
}

template <>
void run(RowNormProblem const& problem, RowNormProblem::Arguments const& arguments) {
  problem.direction == Direction::forward ? normalize_rows(in_rows(problem), arguments)
                                          : normalize_rows_backward(in_rows(problem), arguments);
}

template <>
void run(LrnProblem const& problem, LrnProblem::Arguments const& arguments) {
  problem.direction == Direction::forward ? lrn_forward(problem, arguments)
                                          : lrn_backward(problem, arguments);
}

}  // namespace cosmati::reference
