// Softmax, log-softmax and the cross-entropy of their result. The largest value is subtracted first, so that
// no exponential overflows.
#include <algorithm>
#include <cmath>
#include <string>

#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {
namespace {

// log(sum over the axis of exp(x)) = max + log(sum of exp(x - max)), in two parts
struct LogSum {
  double max;
  double log_sum;  // log of the sum of exp(x - max)
};

LogSum log_sum_exp(Input const& x, Position at, int axis) {
  LogSum result{-HUGE_VAL, 0};
  for (at[axis] = 0; at[axis] < x.extent(axis); ++at[axis]) result.max = std::max(result.max, x(at));
  double sum = 0;
  for (at[axis] = 0; at[axis] < x.extent(axis); ++at[axis]) sum += std::exp(x(at) - result.max);
  result.log_sum = std::log(sum);
  return result;
}

// y = exp(x) / sum of exp(x), or its logarithm
void forward(SoftmaxProblem const& problem, SoftmaxProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Output const y(problem.y, arguments.y);
  for_each_index(without(x.shape(), problem.axis), [&](Position at) {
    LogSum const total = log_sum_exp(x, at, problem.axis);
    for (Index& i = at[problem.axis]; i < x.extent(problem.axis); ++i) {
      double const logarithm = x(at) - total.max - total.log_sum;
      y(at) = problem.logarithm ? logarithm : std::exp(logarithm);
    }
  });
}

// softmax: dx = y * (dy - sum of dy*y); log-softmax: dx = dy - exp(y) * sum of dy
void backward(SoftmaxProblem const& problem, SoftmaxProblem::Arguments const& arguments) {
  Input const y(problem.y, arguments.saved_y);
  Input const dy(problem.dy, arguments.dy);
  Output const dx(problem.x, arguments.dx);
  for_each_index(without(y.shape(), problem.axis), [&](Position at) {
    Index& i = at[problem.axis];
    double sum = 0;
    for (; i < y.extent(problem.axis); ++i) sum += problem.logarithm ? dy(at) : dy(at) * y(at);
    for (i = 0; i < y.extent(problem.axis); ++i)
      dx(at) = problem.logarithm ? dy(at) - std::exp(y(at)) * sum : y(at) * (dy(at) - sum);
  });
}

}  // namespace

template <>
void run(SoftmaxProblem const& problem, SoftmaxProblem::Arguments const& arguments) {
  problem.direction == Direction::forward ? forward(problem, arguments) : backward(problem, arguments);
}

// loss = mean over n of -log softmax(x[n])[label[n]]; dx = (softmax(x) - one_hot(label)) / N
template <>
void run(CrossEntropyProblem const& problem, CrossEntropyProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Input const labels(problem.labels, arguments.labels);
  Output const loss(problem.loss, arguments.loss);
  Output const dx(problem.dx, arguments.dx);
  Index const count = x.extent(0), classes = x.extent(1);
  check_labels("cross-entropy", problem.labels, arguments.labels, classes);
  double sum = 0;
  for (Index n = 0; n < count; ++n) {
    LogSum const total = log_sum_exp(x, Position{{n}}, 1);
    Index const label = labels.integer(n);
    sum += total.max - x(n, label) + total.log_sum;
    if (!problem.dx.present()) continue;
    for (Index i = 0; i < classes; ++i) {
      double const probability = std::exp(x(n, i) - total.max - total.log_sum);
      dx(n, i) = (probability - (i == label ? 1 : 0)) / static_cast<double>(count);
    }
  }
  if (problem.direction == Direction::forward) loss(0) = sum / static_cast<double>(count);
}

}  // namespace cosmati::reference
