// The Gaussian output layer and its loss: LeCun, Bottou, Bengio and Haffner 1998, section II and equation 9.
#include <algorithm>
#include <cmath>

#include "reference/elements.h"
#include "reference/reference.h"

namespace cosmati::reference {
namespace {

// distance[n, i] = sum over f of (x[n, f] - center[i, f])^2
double distance(Input const& x, Input const& centres, Index n, Index i) {
  double sum = 0;
  for (Index f = 0; f < x.extent(1); ++f) {
    double const difference = x(n, f) - centres(i, f);
    sum += difference * difference;
  }
  return sum;
}

// exp(-rubbish) + sum over i of exp(-distance[n, i]) = exp(-smallest) * sum, with the largest term factored
// out.
struct Partition {
  double smallest, sum;
  double loss(double distance) const { return distance - smallest + std::log(sum); }
  // exp(-distance) / partition. The exponent is a difference of distances; subtracting a logarithm instead
  // would add its rounding error, which is relative to the size of the distances.
  double share(double distance) const { return std::exp(smallest - distance) / sum; }
};

Partition partition_of(Input const& x, Input const& centres, double rubbish, Index n) {
  Partition partition{rubbish, 0};
  for (Index i = 0; i < centres.extent(0); ++i)
    partition.smallest = std::min(partition.smallest, distance(x, centres, n, i));
  partition.sum = std::exp(partition.smallest - rubbish);
  for (Index i = 0; i < centres.extent(0); ++i)
    partition.sum += std::exp(partition.smallest - distance(x, centres, n, i));
  return partition;
}

// loss = mean over n of distance[n, label[n]] + log(partition(n))
void forward(RbfProblem const& problem, RbfProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Input const centres(problem.centres, arguments.centres);
  Input const labels(problem.labels, arguments.labels);
  Output const distances(problem.distances, arguments.distances);
  Output const loss(problem.loss, arguments.loss);
  Index const count = x.extent(0), classes = centres.extent(0);
  if (problem.distances.present())
    for (Index n = 0; n < count; ++n)
      for (Index i = 0; i < classes; ++i) distances(n, i) = distance(x, centres, n, i);
  if (!problem.labels.present()) return;
  double sum = 0;
  for (Index n = 0; n < count; ++n)
    sum += partition_of(x, centres, problem.rubbish, n).loss(distance(x, centres, n, labels.integer(n)));
  loss(0) = sum / static_cast<double>(count);
}

// The gradient of the objective with respect to the distances: for the loss ((i == label[n]) -
// exp(-distance[n, i]) / partition(n)) / N, otherwise the given gradient.
class DistanceGradient {
 public:
  DistanceGradient(RbfProblem const& problem, RbfProblem::Arguments const& arguments)
      : problem_(problem),
        x_(problem.x, arguments.x),
        centres_(problem.centres, arguments.centres),
        labels_(problem.labels, arguments.labels),
        ddistances_(problem.distances, arguments.ddistances) {}

  // The part that all classes of row n share.
  Partition shared_by(Index n) const {
    return problem_.labels.present() ? partition_of(x_, centres_, problem_.rubbish, n) : Partition{0, 1};
  }
  double operator()(Index n, Index i, Partition const& partition) const {
    if (!problem_.labels.present()) return ddistances_(n, i);
    double const probability = partition.share(distance(x_, centres_, n, i));
    return ((labels_.integer(n) == i ? 1 : 0) - probability) / static_cast<double>(x_.extent(0));
  }

 private:
  RbfProblem const& problem_;
  Input x_, centres_, labels_, ddistances_;
};

// Features are summed in blocks of this size, so that a distance's gradient is computed once per block.
constexpr Index block = 128;

// dx[n, f] = sum over i of ddistance[n, i] * 2 * (x[n, f] - center[i, f])
void gradient_of_x(RbfProblem const& problem, RbfProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Input const centres(problem.centres, arguments.centres);
  Output const dx(problem.x, arguments.dx);
  DistanceGradient const ddistance(problem, arguments);
  for (Index n = 0; n < x.extent(0); ++n) {
    Partition const shared = ddistance.shared_by(n);
    for (Index first = 0; first < x.extent(1); first += block) {
      Index const last = std::min(first + block, x.extent(1));
      double sum[block] = {};
      for (Index i = 0; i < centres.extent(0); ++i) {
        double const g = ddistance(n, i, shared);
        for (Index f = first; f < last; ++f) sum[f - first] += g * 2 * (x(n, f) - centres(i, f));
      }
      for (Index f = first; f < last; ++f) dx(n, f) = sum[f - first];
    }
  }
}

// dcenter[i, f] = sum over n of ddistance[n, i] * 2 * (center[i, f] - x[n, f])
void gradient_of_centres(RbfProblem const& problem, RbfProblem::Arguments const& arguments) {
  Input const x(problem.x, arguments.x);
  Input const centres(problem.centres, arguments.centres);
  Output const dcentres(problem.dcentres, arguments.dcentres);
  DistanceGradient const ddistance(problem, arguments);
  for (Index i = 0; i < centres.extent(0); ++i)
    for (Index first = 0; first < x.extent(1); first += block) {
      Index const last = std::min(first + block, x.extent(1));
      double sum[block] = {};
      for (Index n = 0; n < x.extent(0); ++n) {
        double const g = ddistance(n, i, ddistance.shared_by(n));
        for (Index f = first; f < last; ++f) sum[f - first] += g * 2 * (centres(i, f) - x(n, f));
      }
      for (Index f = first; f < last; ++f) dcentres(i, f) = sum[f - first];
    }
}

}  // namespace

template <>
void run(RbfProblem const& problem, RbfProblem::Arguments const& arguments) {
  if (problem.labels.present())
    check_labels("rbf", problem.labels, arguments.labels, problem.centres.extent(0));
  if (problem.direction == Direction::forward) {
    forward(problem, arguments);
  } else {
    gradient_of_x(problem, arguments);
    if (problem.dcentres.present()) gradient_of_centres(problem, arguments);
  }
}

}  // namespace cosmati::reference
