// Cross-entropy of a softmax and its gradient in one pass over the logits.
#include <algorithm>
#include <cmath>
#include <memory>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

class CrossEntropyKernel final : public HostKernel<CrossEntropyProblem> {
 public:
  CrossEntropyKernel(CrossEntropyProblem const& problem, int threads)
      : problem_(problem), threads_(problem.x.layout.size() < 2048 ? 1 : threads) {}

  // One loss per row, followed by two rows of values per thread.
  std::size_t workspace_bytes() const {
    return losses_bytes() + 2 * static_cast<std::size_t>(threads_) * row_bytes();
  }

  void run(CrossEntropyProblem::Arguments const& arguments, std::byte* workspace) const override {
    Index const count = problem_.x.extent(0);
    check_labels("cross-entropy", problem_.labels, arguments.labels, problem_.x.extent(1));
    auto* const losses = reinterpret_cast<double*>(workspace);
    parallel_parts(threads_, [&](int part, int parts) {
      std::byte* const memory = workspace + losses_bytes() + 2 * static_cast<std::size_t>(part) * row_bytes();
      auto const [first, last] = share(count, part, parts);
      for (Index n = first; n < last; ++n)
        losses[n] = row(arguments, n, reinterpret_cast<double*>(memory),
                        reinterpret_cast<double*>(memory + row_bytes()));
    });
    if (problem_.direction != Direction::forward) return;
    double sum = 0;
    for (Index n = 0; n < count; ++n) sum += losses[n];
    store(problem_.loss.type, arguments.loss, 0, sum / static_cast<double>(count));
  }

 private:
  std::size_t losses_bytes() const {
    return round_up(static_cast<std::size_t>(problem_.x.extent(0)) * sizeof(double));
  }
  std::size_t row_bytes() const {
    return round_up(static_cast<std::size_t>(problem_.x.extent(1)) * sizeof(double));
  }

  // Returns -log softmax(x[n])[label[n]] and writes dx[n].
  double row(CrossEntropyProblem::Arguments const& arguments, Index n, double* x, double* powers) const {
    TensorDescription const& logits = problem_.x;
    Index const classes = logits.extent(1);
    Index const label = static_cast<int const*>(arguments.labels)[n * problem_.labels.layout.stride[0]];
    read_row(logits.type, element(logits.type, arguments.x, n * logits.layout.stride[0]),
             logits.layout.stride[1], x, classes);
    double const largest = *std::max_element(x, x + classes);
    double sum = 0;
    for (Index i = 0; i < classes; ++i) {
      powers[i] = std::exp(x[i] - largest);
      sum += powers[i];
    }
    double const loss = largest - x[label] + std::log(sum);
    if (problem_.dx.present()) {
      double const scale = 1 / (sum * static_cast<double>(logits.extent(0)));
      for (Index i = 0; i < classes; ++i) powers[i] *= scale;
      powers[label] -= 1 / static_cast<double>(logits.extent(0));
      TensorDescription const& dx = problem_.dx;
      write_row(powers, dx.type, element(dx.type, arguments.dx, n * dx.layout.stride[0]), dx.layout.stride[1],
                classes);
    }
    return loss;
  }

  CrossEntropyProblem problem_;
  int threads_;
};

std::string violates_classes(CrossEntropyProblem const& problem, Device const&) {
  return problem.x.layout.size() > 0 ? "" : "x " + to_string(problem.x.shape()) + " is empty";
}

}  // namespace

template <>
Candidate<CrossEntropyProblem> own_candidate() {
  return {"one_pass",
          {{violates_classes}},
          [](CrossEntropyProblem const& problem, Device const& device) {
            return CrossEntropyKernel(problem, device.threads).workspace_bytes();
          },
          [](Plan<CrossEntropyProblem> const& plan) -> std::unique_ptr<Kernel<CrossEntropyProblem>> {
            return std::make_unique<CrossEntropyKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
