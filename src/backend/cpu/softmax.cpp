// Softmax and log-softmax along any axis of any layout and type, forward and backward.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cosmati/epilogue/parse.h"
#include "cosmati/epilogue/vector_program.h"
#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

constexpr Index small_softmax = 1 << 12;  // elements processed in the time needed to start a second thread

template <class Real>
class SoftmaxKernel final : public HostKernel<SoftmaxProblem> {
 public:
  SoftmaxKernel(SoftmaxProblem const& problem, int threads)
      : problem_(problem),
        forward_(problem.direction == Direction::forward),
        exponential_(epilogue::parse(forward_ ? "exp(acc - shift)" : "exp(acc)")),
        length_(problem.y.extent(problem.axis)),
        threads_(problem.y.layout.size() < small_softmax ? 1 : threads) {
    Layout const first = without_axis(forward_ ? problem.x : problem.dy), y = without_axis(problem.y);
    nest_ = make_loop_nest<3>({y, first, forward_ ? y : without_axis(problem.x)});
  }

  // Two rows of values and the program's scratch memory for each thread.
  std::size_t workspace_bytes() const { return static_cast<std::size_t>(threads_) * part_bytes(); }

  void run(SoftmaxProblem::Arguments const& arguments, std::byte* workspace) const override {
    parallel_parts(threads_, [&](int part, int parts) {
      std::byte* const memory = workspace + static_cast<std::size_t>(part) * part_bytes();
      Rows const rows{reinterpret_cast<Real*>(memory), reinterpret_cast<Real*>(memory + row_bytes()),
                      memory + 2 * row_bytes()};
      auto const [first, last] = share(nest_.size(), part, parts);
      for (Index i = first; i < last; ++i)
        forward_ ? forward(arguments, i, rows) : backward(arguments, i, rows);
    });
  }

 private:
  struct Rows {
    Real* a;
    Real* b;
    std::byte* scratch;
  };
  Layout without_axis(TensorDescription const& t) const {
    Layout layout = t.layout;
    layout.shape[problem_.axis] = 1;
    return layout;
  }
  std::size_t row_bytes() const { return round_up(static_cast<std::size_t>(length_) * sizeof(Real)); }
  std::size_t part_bytes() const { return 2 * row_bytes() + round_up(exponential_.scratch_bytes()); }
  Index step(TensorDescription const& t) const { return t.layout.stride[problem_.axis]; }

  void read(TensorDescription const& t, void const* data, Index offset, Real* row) const {
    read_row(t.type, element(t.type, data, offset), step(t), row, length_);
  }
  void write(Real const* row, TensorDescription const& t, void* data, Index offset) const {
    write_row(row, t.type, element(t.type, data, offset), step(t), length_);
  }
  void exponentials(Real const* from, Real shift, Real* to, std::byte* scratch) const {
    epilogue::VectorArguments<Real> arguments;
    arguments.accumulator = {from, 1};
    arguments.scalars = &shift;
    arguments.result = to;
    exponential_.run(length_, arguments, scratch);
  }

  // y = exp(x - max) / sum, or x - max - log(sum)
  void forward(SoftmaxProblem::Arguments const& arguments, Index i, Rows const& rows) const {
    read(problem_.x, arguments.x, nest_.offset(1, i), rows.a);
    Real const largest = *std::max_element(rows.a, rows.a + length_);
    exponentials(rows.a, largest, rows.b, rows.scratch);
    double sum = 0;
    for (Index j = 0; j < length_; ++j) sum += static_cast<double>(rows.b[j]);
    if (problem_.logarithm) {
      double const shift = std::log(sum) + static_cast<double>(largest);
      for (Index j = 0; j < length_; ++j)
        rows.b[j] = static_cast<Real>(static_cast<double>(rows.a[j]) - shift);
    } else {
      Real const scale = static_cast<Real>(1 / sum);
      for (Index j = 0; j < length_; ++j) rows.b[j] *= scale;
    }
    write(rows.b, problem_.y, arguments.y, nest_.offset(0, i));
  }

  // dx = y * (dy - sum of dy*y), or dy - exp(y) * sum of dy
  void backward(SoftmaxProblem::Arguments const& arguments, Index i, Rows const& rows) const {
    read(problem_.y, arguments.saved_y, nest_.offset(0, i), rows.a);
    read(problem_.dy, arguments.dy, nest_.offset(1, i), rows.b);
    double sum = 0;
    if (problem_.logarithm) {
      for (Index j = 0; j < length_; ++j) sum += static_cast<double>(rows.b[j]);
      exponentials(rows.a, 0, rows.a, rows.scratch);
      for (Index j = 0; j < length_; ++j) rows.a[j] = rows.b[j] - rows.a[j] * static_cast<Real>(sum);
    } else {
      for (Index j = 0; j < length_; ++j)
        sum += static_cast<double>(rows.b[j]) * static_cast<double>(rows.a[j]);
      for (Index j = 0; j < length_; ++j) rows.a[j] *= rows.b[j] - static_cast<Real>(sum);
    }
    write(rows.a, problem_.x, arguments.dx, nest_.offset(2, i));
  }

  SoftmaxProblem problem_;
  bool forward_;
  epilogue::VectorProgram<Real> exponential_;
  Index length_;
  int threads_;
  LoopNest<3> nest_;  // over the rows: y, x or dy, dx
};

bool in_double(SoftmaxProblem const& problem) { return problem.y.type == DataType::f64; }

std::string violates_axis(SoftmaxProblem const& problem, Device const&) {
  return problem.y.layout.size() > 0 ? "" : "y " + to_string(problem.y.shape()) + " is empty";
}

}  // namespace

template <>
Candidate<SoftmaxProblem> own_candidate() {
  return {"by_rows",
          {{violates_axis}},
          [](SoftmaxProblem const& problem, Device const& device) {
            return in_double(problem) ? SoftmaxKernel<double>(problem, device.threads).workspace_bytes()
                                      : SoftmaxKernel<float>(problem, device.threads).workspace_bytes();
          },
          [](Plan<SoftmaxProblem> const& plan) -> std::unique_ptr<Kernel<SoftmaxProblem>> {
            if (in_double(plan.problem))
              return std::make_unique<SoftmaxKernel<double>>(plan.problem, plan.device.threads);
            return std::make_unique<SoftmaxKernel<float>>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
