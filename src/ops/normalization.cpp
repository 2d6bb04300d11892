// Validation of batch, layer, RMS, group and local response normalization.
#include "cosmati/ops/normalization.h"

#include <fmt/format.h>

#include "src/ops/check.h"

namespace cosmati {
namespace {

char const* operation_of(BatchNormMode mode) {
  switch (mode) {
    case BatchNormMode::inference: return "batch normalization inference";
    case BatchNormMode::training: return "batch normalization training";
    case BatchNormMode::backward: break;
  }
  return "batch normalization backward";
}

char const* operation_of(RowNormMode mode, bool forward) {
  switch (mode) {
    case RowNormMode::layer: return forward ? "layer normalization" : "layer normalization backward";
    case RowNormMode::rms: return forward ? "RMS normalization" : "RMS normalization backward";
    case RowNormMode::group: break;
  }
  return forward ? "group normalization" : "group normalization backward";
}

// Dimension d as the two dimensions (groups, extent / groups).
Layout split(Layout const& layout, int d, Index groups) {
  Layout result;
  result.shape.rank = layout.rank() + 1;
  for (int to = 0; to < result.shape.rank; ++to) {
    int const from = to > d ? to - 1 : to;
    result.shape[to] = layout.extent(from);
    result.stride[to] = layout.stride[from];
  }
  result.shape[d] = groups;
  result.shape[d + 1] = layout.extent(d) / groups;
  result.stride[d] = layout.stride[d] * result.shape[d + 1];
  return result;
}

// The name, in messages, of the description that scale, bias, mean and variance share.
constexpr char const* statistics_name = "statistics (of scale, bias, mean and variance)";

}  // namespace

void validate(BatchNormProblem const& problem) {
  char const* const operation = operation_of(problem.mode);
  bool const backward = problem.mode == BatchNormMode::backward;
  Named const x{"x", problem.x};
  BatchNormProblem::visit_tensors(
      problem, [&](char const* name, Role role, TensorDescription const& tensor, auto) {
        check_tensor(operation, {&tensor == &problem.statistics ? statistics_name : name, tensor}, role);
      });
  check_rank(operation, x, 2, 5);
  check_same_shape(operation, {backward ? "dy" : "y", problem.y}, x);
  if (backward) check_same_shape(operation, {"dx", problem.dx}, x);
  check_shape(operation, {statistics_name, problem.statistics}, {problem.x.extent(1)});
  check_finite(operation, "epsilon", problem.epsilon);
  if (problem.epsilon < 0)
    refuse(operation, fmt::format("epsilon is {}; it must not be negative", problem.epsilon));
  check_finite(operation, "slope", problem.slope);
  if (problem.mode != BatchNormMode::inference && problem.x.layout.size() == 0 && problem.x.extent(1) > 0)
    refuse(operation,
           fmt::format("x is {}: the mean over zero elements is undefined; every extent must be at least 1",
                       to_string(problem.x)));
}

RowNormProblem in_rows(RowNormProblem problem) {
  if (problem.mode == RowNormMode::group) {
    problem.axis = 2;
    for (TensorDescription* const image : {&problem.x, &problem.y, &problem.dx})
      if (image->present()) image->layout = split(image->layout, 1, problem.groups);
    for (TensorDescription* const channels :
         {&problem.weight, &problem.bias, &problem.dweight, &problem.dbias})
      if (channels->present()) channels->layout = split(channels->layout, 0, problem.groups);
  }
  int const rank = problem.x.layout.rank();
  for (TensorDescription* const tensor :
       {&problem.weight, &problem.bias, &problem.dweight, &problem.dbias, &problem.statistics}) {
    if (!tensor->present()) continue;
    Layout const given = tensor->layout;
    Layout& layout = tensor->layout = {};
    layout.shape.rank = rank;
    for (int d = 0, next = 0; d < rank; ++d) {
      bool const varies = tensor == &problem.statistics ? d < problem.axis : problem.has_parameters_along(d);
      layout.shape[d] = varies ? problem.x.extent(d) : 1;
      layout.stride[d] = varies ? given.stride[next++] : 0;
    }
  }
  return problem;
}

void validate(RowNormProblem const& problem) {
  bool const forward = problem.direction == Direction::forward, centered = problem.centered();
  bool const grouped = problem.mode == RowNormMode::group;
  char const* const operation = operation_of(problem.mode, forward);
  Named const x{"x", problem.x};
  check_tensors(operation, problem);
  check_rank(operation, x, grouped ? 2 : 1, grouped ? max_rank - 1 : max_rank);
  int const rank = problem.x.layout.rank();
  if (grouped && (problem.groups < 1 || problem.x.extent(1) % problem.groups != 0))
    refuse(operation, fmt::format("groups is {}; it must be at least 1 and divide the {} channels of x, {}",
                                  problem.groups, problem.x.extent(1), to_string(problem.x)));
  if (!grouped && (problem.axis < 0 || problem.axis >= rank))
    refuse(operation, fmt::format("the axis is {}; x, {}, is of rank {}; valid values: 0 to {}", problem.axis,
                                  to_string(problem.x), rank, rank - 1));
  RowNormProblem rows;
  rows.mode = problem.mode;
  rows.axis = problem.axis;
  rows.groups = problem.groups;
  rows.x = problem.x;
  rows = in_rows(rows);
  Shape parameters, statistics = problem.x.shape();
  Index row = 1;
  for (int d = rows.axis; d < rows.x.layout.rank(); ++d) row *= rows.x.extent(d);
  for (int d = problem.axis; d < rank && !grouped; ++d) {
    parameters[parameters.rank++] = problem.x.extent(d);
    statistics[d] = 1;
  }
  if (grouped) {
    parameters = {problem.x.extent(1)};
    statistics = {problem.x.extent(0), problem.groups};
  }
  check_same_shape(operation, {forward ? "y" : "dy", problem.y}, x);
  if (!forward) check_same_shape(operation, {"dx", problem.dx}, x);
  for (Named const& tensor : {Named{"weight", problem.weight}, Named{"bias", problem.bias},
                              Named{"dweight", problem.dweight}, Named{"dbias", problem.dbias}})
    if (tensor.tensor.present()) check_shape(operation, tensor, parameters);
  if (!forward || problem.statistics.present())
    check_shape(operation, {"statistics (of mean and inverse)", problem.statistics}, statistics);
  if (!centered && (problem.bias.present() || problem.dbias.present()))
    refuse(operation, "a bias is given; only layer normalization adds one");
  check_finite(operation, "epsilon", problem.epsilon);
  if (problem.epsilon < 0)
    refuse(operation, fmt::format("epsilon is {}; it must not be negative", problem.epsilon));
  if (row == 0)
    refuse(operation,
           fmt::format("x is {}: the mean over zero elements is undefined; every extent starting at axis {} "
                       "must be at least 1",
                       to_string(problem.x), grouped ? 1 : problem.axis));
}

void validate(LrnProblem const& problem) {
  bool const forward = problem.direction == Direction::forward;
  char const* const operation =
      forward ? "local response normalization forward" : "local response normalization backward";
  Named const x{"x", problem.x};
  check_tensors(operation, problem);
  check_rank(operation, x, 2, max_rank);
  check_same_shape(operation, {forward ? "y" : "dy", problem.y}, x);
  if (!forward) check_same_shape(operation, {"dx", problem.dx}, x);
  check_at_least(operation, "size", problem.size, 1);
  check_finite(operation, "alpha", problem.alpha);
  check_finite(operation, "beta", problem.beta);
  check_finite(operation, "k", problem.k);
}

}  // namespace cosmati
