// Validation of softmax, cross-entropy and the Gaussian output layer.
#include "cosmati/ops/softmax.h"

#include <fmt/format.h>

#include "src/ops/check.h"

namespace cosmati {
namespace {

void check_labels_of(char const* operation, TensorDescription const& labels, Named x) {
  check_type(operation, {"labels", labels}, {DataType::s32});
  check_shape(operation, {"labels", labels}, {x.tensor.extent(0)});
  if (x.tensor.extent(0) == 0)
    refuse(operation,
           fmt::format("{} is {}: the mean loss over zero rows is undefined; at least 1 row is required",
                       x.name, to_string(x.tensor)));
}

void check_classes(char const* operation, Named tensor, Index classes) {
  if (classes < 1)
    refuse(operation, fmt::format("{} is {}, with 0 classes; at least 1 is required", tensor.name,
                                  to_string(tensor.tensor)));
}

}  // namespace

void check_labels(char const* operation, TensorDescription const& labels, void const* data, Index classes) {
  for (Index n = 0; n < labels.extent(0); ++n) {
    double const label = load(labels.type, data, labels.layout.offset(n));
    if (!(label >= 0 && label < static_cast<double>(classes)))
      refuse(operation, fmt::format("label {} is {}; labels of {} classes are from 0 to {}", n, label,
                                    classes, classes - 1));
  }
}

void validate(SoftmaxProblem const& problem) {
  bool const forward = problem.direction == Direction::forward;
  char const* const operation = forward ? "softmax forward" : "softmax backward";
  Named const y{"y", problem.y};
  check_tensors(operation, problem);
  check_same_shape(operation, {forward ? "x" : "dx", problem.x}, y);
  if (!forward) check_same_shape(operation, {"dy", problem.dy}, y);
  int const rank = problem.x.layout.rank();
  if (problem.axis < 0 || problem.axis >= rank)
    refuse(operation, fmt::format("the axis is {}; {} is of rank {}; valid values: 0 to {}", problem.axis,
                                  to_string(problem.x), rank, rank - 1));
}

void validate(CrossEntropyProblem const& problem) {
  bool const forward = problem.direction == Direction::forward;
  char const* const operation = forward ? "cross-entropy forward" : "cross-entropy backward";
  Named const x{"x", problem.x};
  check_tensors(operation, problem);
  check_rank(operation, x, 2);
  check_classes(operation, x, problem.x.extent(1));
  check_labels_of(operation, problem.labels, x);
  if (forward) check_shape(operation, {"loss", problem.loss}, {1});
  if (!forward && !problem.dx.present()) refuse(operation, "dx is missing");
  if (problem.dx.present()) check_same_shape(operation, {"dx", problem.dx}, x);
}

void validate(RbfProblem const& problem) {
  bool const forward = problem.direction == Direction::forward;
  char const* const operation = forward ? "rbf forward" : "rbf backward";
  Named const x{forward ? "x" : "x (and dx)", problem.x}, centres{"centres", problem.centres};
  bool const labeled = problem.labels.present();
  check_tensors(operation, problem);
  check_rank(operation, x, 2);
  check_rank(operation, centres, 2);
  Index const rows = problem.x.extent(0), classes = problem.centres.extent(0);
  check_shape(operation, centres, {classes, problem.x.extent(1)});
  if (labeled) {
    check_labels_of(operation, problem.labels, x);
    check_classes(operation, centres, classes);
    if (forward) check_shape(operation, {"loss", problem.loss}, {1});
    if (!(problem.rubbish > -__builtin_huge_val()))
      refuse(operation, fmt::format("rubbish is {}; it must be a number or infinity", problem.rubbish));
  }
  char const* const distances = forward ? "distances" : "ddistances";
  if (!labeled && !problem.distances.present())
    refuse(operation, fmt::format("{} are missing; they are required without labels", distances));
  if (problem.distances.present()) check_shape(operation, {distances, problem.distances}, {rows, classes});
  if (!forward && problem.dcentres.present())
    check_same_shape(operation, {"dcentres", problem.dcentres}, centres);
}

}  // namespace cosmati
