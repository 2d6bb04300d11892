// The Gaussian (RBF) output layer and its loss, computed on copies in double.
#include <algorithm>
#include <cmath>
#include <memory>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

// sum of (a - b)^2, in eight lanes
COSMATI_ALWAYS_INLINE double sum_of_squared_differences(double const* a, double const* b, Index count) {
  constexpr int lanes = 8;
  double lane[lanes] = {};
  Index i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int l = 0; l < lanes; ++l) lane[l] += (a[i + l] - b[i + l]) * (a[i + l] - b[i + l]);
  for (; i < count; ++i) lane[0] += (a[i] - b[i]) * (a[i] - b[i]);
  double sum = 0;
  for (double const value : lane) sum += value;
  return sum;
}

// sum += factor * (a - b)
COSMATI_ALWAYS_INLINE void add_scaled_difference(double factor, double const* a, double const* b, double* sum,
                                                 Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) sum[i] += factor * (a[i] - b[i]);
}

double squared_distance(double const* a, double const* b, Index count) {
  return Clones<sum_of_squared_differences>::call(a, b, count);
}
void add_difference(double factor, double const* a, double const* b, double* sum, Index count) {
  Clones<add_scaled_difference>::call(factor, a, b, sum, count);
}

class RbfKernel final : public HostKernel<RbfProblem> {
 public:
  RbfKernel(RbfProblem const& problem, int threads)
      : problem_(problem),
        count_(problem.x.extent(0)),
        features_(problem.x.extent(1)),
        classes_(problem.centres.extent(0)),
        threads_(count_ * classes_ * features_ < 32768 ? 1 : threads) {}

  std::size_t workspace_bytes() const {
    return places().sums + static_cast<std::size_t>(threads_) * row_bytes();
  }

  void run(RbfProblem::Arguments const& arguments, std::byte* workspace) const override {
    if (problem_.labels.present())
      check_labels("rbf", problem_.labels, arguments.labels, problem_.centres.extent(0));
    Workspace const memory{workspace, *this};
    convert_elements(problem_.centres, arguments.centres, dense(classes_, features_), memory.centres(),
                     threads_);
    convert_elements(problem_.x, arguments.x, dense(count_, features_), memory.x(), threads_);
    parallel_parts(threads_, [&](int part, int parts) {
      auto const [first, last] = share(count_, part, parts);
      for (Index n = first; n < last; ++n) {
        row(arguments, n, memory);
        if (problem_.direction == Direction::backward) gradient_of_x(arguments, n, memory, memory.sum(part));
      }
    });
    if (problem_.direction == Direction::backward) {
      if (problem_.dcentres.present()) gradient_of_centres(arguments, memory);
    } else if (problem_.labels.present()) {
      double sum = 0;
      for (Index n = 0; n < count_; ++n) sum += memory.losses()[n];
      store(problem_.loss.type, arguments.loss, 0, sum / static_cast<double>(count_));
    }
  }

 private:
  struct Places {
    std::size_t x, distances, losses, sums;  // byte offsets; the centers are at 0
  };
  static TensorDescription dense(Index rows, Index columns) {
    return describe(DataType::f64, Shape{rows, columns});
  }
  static std::size_t bytes(Index elements) {
    return round_up(static_cast<std::size_t>(elements) * sizeof(double));
  }
  std::size_t row_bytes() const { return bytes(features_); }
  Places places() const {
    Places p{};
    p.x = bytes(classes_ * features_);
    p.distances = p.x + bytes(count_ * features_);
    p.losses = p.distances + bytes(count_ * classes_);
    p.sums = p.losses + bytes(count_);
    return p;
  }

  // The parts of the workspace. In the backward direction, the gradients of a row replace its `distances`.
  struct Workspace {
    std::byte* memory;
    RbfKernel const& kernel;
    double* place(std::size_t offset) const { return reinterpret_cast<double*>(memory + offset); }
    double* centres() const { return place(0); }
    double* x() const { return place(kernel.places().x); }
    double* distances() const { return place(kernel.places().distances); }
    double* losses() const { return place(kernel.places().losses); }
    double* sum(int part) const {
      return place(kernel.places().sums + static_cast<std::size_t>(part) * kernel.row_bytes());
    }
  };

  Index label_of(RbfProblem::Arguments const& arguments, Index n) const {
    return static_cast<int const*>(arguments.labels)[n * problem_.labels.layout.stride[0]];
  }

  // Computes the distances of row n and, forward, its loss; backward, replaces them by their gradient.
  void row(RbfProblem::Arguments const& arguments, Index n, Workspace const& memory) const {
    double* const distance = memory.distances() + n * classes_;
    TensorDescription const& outer = problem_.distances;
    bool const forward = problem_.direction == Direction::forward;
    if (!forward && !problem_.labels.present())
      return read_row(outer.type, element(outer.type, arguments.ddistances, n * outer.layout.stride[0]),
                      outer.layout.stride[1], distance, classes_);
    for (Index i = 0; i < classes_; ++i)
      distance[i] = squared_distance(memory.x() + n * features_, memory.centres() + i * features_, features_);
    if (forward && outer.present())
      write_row(distance, outer.type, element(outer.type, arguments.distances, n * outer.layout.stride[0]),
                outer.layout.stride[1], classes_);
    if (!problem_.labels.present()) return;
    // log(exp(-rubbish) + sum of exp(-distance)), with the largest term factored out
    double const smallest = std::min(problem_.rubbish, *std::min_element(distance, distance + classes_));
    double sum = std::exp(smallest - problem_.rubbish);
    for (Index i = 0; i < classes_; ++i) sum += std::exp(smallest - distance[i]);
    Index const label = label_of(arguments, n);
    memory.losses()[n] = distance[label] - smallest + std::log(sum);
    if (forward) return;
    for (Index i = 0; i < classes_; ++i)
      distance[i] =
          ((i == label ? 1.0 : 0.0) - std::exp(smallest - distance[i]) / sum) / static_cast<double>(count_);
  }

  // dx[n] = sum over i of ddistance[n, i] * 2 * (x[n] - centre[i])
  void gradient_of_x(RbfProblem::Arguments const& arguments, Index n, Workspace const& memory,
                     double* sum) const {
    std::fill(sum, sum + features_, 0.0);
    for (Index i = 0; i < classes_; ++i)
      add_difference(2 * memory.distances()[n * classes_ + i], memory.x() + n * features_,
                     memory.centres() + i * features_, sum, features_);
    Layout const& layout = problem_.x.layout;
    write_row(sum, problem_.x.type, element(problem_.x.type, arguments.dx, n * layout.stride[0]),
              layout.stride[1], features_);
  }

  // dcentre[i] = sum over n of ddistance[n, i] * 2 * (centre[i] - x[n])
  void gradient_of_centres(RbfProblem::Arguments const& arguments, Workspace const& memory) const {
    parallel_parts(threads_, [&](int part, int parts) {
      auto const [first, last] = share(classes_, part, parts);
      double* const sum = memory.sum(part);
      for (Index i = first; i < last; ++i) {
        std::fill(sum, sum + features_, 0.0);
        for (Index n = 0; n < count_; ++n)
          add_difference(2 * memory.distances()[n * classes_ + i], memory.centres() + i * features_,
                         memory.x() + n * features_, sum, features_);
        TensorDescription const& to = problem_.dcentres;
        write_row(sum, to.type, element(to.type, arguments.dcentres, i * to.layout.stride[0]),
                  to.layout.stride[1], features_);
      }
    });
  }

  RbfProblem problem_;
  Index count_, features_, classes_;
  int threads_;
};

std::string violates_rbf_size(RbfProblem const& problem, Device const&) {
  if (problem.x.layout.size() > 0 && problem.centres.layout.size() > 0) return {};
  return "x " + to_string(problem.x.shape()) + " or centres " + to_string(problem.centres.shape()) +
         " is empty";
}

}  // namespace

template <>
Candidate<RbfProblem> own_candidate() {
  return {"vectorized",
          {{violates_rbf_size}},
          [](RbfProblem const& problem, Device const& device) {
            return RbfKernel(problem, device.threads).workspace_bytes();
          },
          [](Plan<RbfProblem> const& plan) -> std::unique_ptr<Kernel<RbfProblem>> {
            return std::make_unique<RbfKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
