// Reductions in double, to one result or to a row of results.
#include "src/backend/cpu/reduce.h"

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

constexpr Index reduce_chunk = 512;   // elements
constexpr Index small_sum = 1 << 14;  // elements processed in the time needed to start a second thread

double initial(ReduceOperation operation) {
  if (operation == ReduceOperation::max) return -HUGE_VAL;
  return operation == ReduceOperation::min ? HUGE_VAL : 0;
}

template <ReduceOperation operation>
COSMATI_ALWAYS_INLINE double joined(double so_far, double value) {
  switch (operation) {
    case ReduceOperation::max: return value > so_far || value != value ? value : so_far;
    case ReduceOperation::min: return value < so_far || value != value ? value : so_far;
    case ReduceOperation::sum_of_squares: return so_far + value * value;
    case ReduceOperation::sum:
    case ReduceOperation::mean: break;
  }
  return so_far + value;
}

// Combines the results of two parts.
template <ReduceOperation operation>
COSMATI_ALWAYS_INLINE double combined(double so_far, double value) {
  constexpr bool squares = operation == ReduceOperation::sum_of_squares;
  return joined < squares ? ReduceOperation::sum : operation > (so_far, value);
}

// Eight independent partial results, so that additions do not wait for each other.
template <ReduceOperation operation>
COSMATI_ALWAYS_INLINE double join_row(double so_far, double const* row, Index count) {
  constexpr int lanes = 8;
  double lane[lanes];
  for (double& value : lane)
    value = operation == ReduceOperation::max   ? -HUGE_VAL
            : operation == ReduceOperation::min ? HUGE_VAL
                                                : 0.0;
  Index i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int l = 0; l < lanes; ++l) lane[l] = joined<operation>(lane[l], row[i + l]);
  for (; i < count; ++i) lane[0] = joined<operation>(lane[0], row[i]);
  for (double const value : lane) so_far = combined<operation>(so_far, value);
  return so_far;
}

template <ReduceOperation operation>
COSMATI_ALWAYS_INLINE void join_rows(double* so_far, double const* row, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) so_far[i] = joined<operation>(so_far[i], row[i]);
}

COSMATI_ALWAYS_INLINE double join_any_row(ReduceOperation operation, double so_far, double const* row,
                                          Index count) {
  switch (operation) {
    case ReduceOperation::max: return join_row<ReduceOperation::max>(so_far, row, count);
    case ReduceOperation::min: return join_row<ReduceOperation::min>(so_far, row, count);
    case ReduceOperation::sum_of_squares:
      return join_row<ReduceOperation::sum_of_squares>(so_far, row, count);
    default: return join_row<ReduceOperation::sum>(so_far, row, count);
  }
}

COSMATI_ALWAYS_INLINE void join_any_rows(ReduceOperation operation, double* so_far, double const* row,
                                         Index count) {
  switch (operation) {
    case ReduceOperation::max: return join_rows<ReduceOperation::max>(so_far, row, count);
    case ReduceOperation::min: return join_rows<ReduceOperation::min>(so_far, row, count);
    case ReduceOperation::sum_of_squares:
      return join_rows<ReduceOperation::sum_of_squares>(so_far, row, count);
    default: return join_rows<ReduceOperation::sum>(so_far, row, count);
  }
}

double join_into_one(ReduceOperation operation, double so_far, double const* row, Index count) {
  return Clones<join_any_row>::call(operation, so_far, row, count);
}
void join_side_by_side(ReduceOperation operation, double* so_far, double const* row, Index count) {
  Clones<join_any_rows>::call(operation, so_far, row, count);
}

ReduceOperation combination(ReduceOperation operation) {
  return operation == ReduceOperation::sum_of_squares ? ReduceOperation::sum : operation;
}

}  // namespace

Reduction::Reduction(ReduceProblem const& problem, int threads) : problem_(problem), threads_(threads) {
  Layout kept = problem.x.layout, reduced = problem.x.layout;
  for (int d = 0; d < kept.rank(); ++d) (problem.y.extent(d) == 1 ? kept : reduced).shape[d] = 1;
  kept_ = make_loop_nest<2>({kept, problem.y.layout});
  reduced_ = make_loop_nest<1>({reduced});
  inner_reduced_ = kept_.rank == 0 || (reduced_.rank > 0 && reduced_.inner_stride(0) < kept_.inner_stride(0));
  width_ = inner_reduced_ ? 1 : std::min(reduce_chunk, kept_.inner());
  groups_ = inner_reduced_ ? kept_.size()
                           : kept_.rows() * ((kept_.inner() + width_ - 1) / std::max<Index>(width_, 1));
  if (kept_.size() * reduced_.size() < small_sum) threads_ = 1;
  split_ = threads_ > 1 && groups_ < 2 * threads_;
}

std::size_t Reduction::workspace_bytes() const {
  return split_ ? static_cast<std::size_t>(threads_) *
                      round_up(static_cast<std::size_t>(groups_ * width_) * sizeof(double))
                : 0;
}

Index Reduction::width_of(Index group) const {
  if (inner_reduced_) return 1;
  Index const per_row = (kept_.inner() + width_ - 1) / width_;
  return std::min(width_, kept_.inner() - group % per_row * width_);
}

void Reduction::reduce_group(void const* x, Index group, Index first, Index last, double* results) const {
  double buffer[reduce_chunk];
  DataType const type = problem_.x.type;
  Index const width = width_of(group);
  std::fill(results, results + width, initial(problem_.operation));
  if (inner_reduced_) {
    Index const start = kept_.offset(0, group);
    Index const inner = reduced_.inner(), step = reduced_.inner_stride(0);
    for (Index at = first; at < last;) {
      Index const length = std::min({reduce_chunk, inner - at % inner, last - at});
      read_row(type, element(type, x, start + reduced_.offset(0, at)), step, buffer, length);
      results[0] = join_into_one(problem_.operation, results[0], buffer, length);
      at += length;
    }
    return;
  }
  Index const per_row = (kept_.inner() + width_ - 1) / width_;
  Index const start = kept_.offset(0, group / per_row * kept_.inner() + group % per_row * width_);
  for (Index at = first; at < last; ++at) {
    read_row(type, element(type, x, start + reduced_.offset(0, at)), kept_.inner_stride(0), buffer, width);
    join_side_by_side(problem_.operation, results, buffer, width);
  }
}

void Reduction::store_group(double const* results, void* y, Index group) const {
  double scaled[reduce_chunk];
  Index const width = width_of(group);
  double const count = static_cast<double>(reduced_.size());
  for (Index i = 0; i < width; ++i)
    scaled[i] = problem_.operation == ReduceOperation::mean ? results[i] / count : results[i];
  Index const per_row = inner_reduced_ ? 1 : (kept_.inner() + width_ - 1) / width_;
  Index const linear = inner_reduced_ ? group : group / per_row * kept_.inner() + group % per_row * width_;
  DataType const type = problem_.y.type;
  write_row(scaled, type, element(type, y, kept_.offset(1, linear)), kept_.inner_stride(1), width);
}

void Reduction::run(void const* x, void* y, std::byte* workspace) const {
  Index const count = reduced_.size();
  if (!split_) {
    parallel_parts(threads_, [&](int part, int parts) {
      double results[reduce_chunk];
      auto const [first, last] = share(groups_, part, parts);
      for (Index group = first; group < last; ++group) {
        reduce_group(x, group, 0, count, results);
        store_group(results, y, group);
      }
    });
    return;
  }
  std::size_t const stride = round_up(static_cast<std::size_t>(groups_ * width_) * sizeof(double));
  auto const partial = [&](int part) {
    return reinterpret_cast<double*>(workspace + static_cast<std::size_t>(part) * stride);
  };
  parallel_parts(threads_, [&](int part, int parts) {
    auto const [first, last] = share(count, part, parts, 64);
    for (Index group = 0; group < groups_; ++group)
      reduce_group(x, group, first, last, partial(part) + group * width_);
  });
  for (Index group = 0; group < groups_; ++group) {
    double* const results = partial(0) + group * width_;
    for (int part = 1; part < threads_; ++part)
      join_side_by_side(combination(problem_.operation), results, partial(part) + group * width_,
                        width_of(group));
    store_group(results, y, group);
  }
}

namespace {

class ReduceKernel final : public HostKernel<ReduceProblem> {
 public:
  ReduceKernel(ReduceProblem const& problem, int threads) : reduction_(problem, threads) {}
  void run(ReduceProblem::Arguments const& arguments, std::byte* workspace) const override {
    reduction_.run(arguments.x, arguments.y, workspace);
  }

 private:
  Reduction reduction_;
};

// The bias gradient as a reduction: the sum of dy over all dimensions but k.
ReduceProblem bias_reduction(ConvolutionProblem const& problem) {
  ReduceProblem reduction{ReduceOperation::sum, problem.y, {}};
  reduction.y.type = problem.db.type;
  reduction.y.layout = {{1, problem.db.extent(0), 1, 1}, {0, problem.db.layout.stride[0], 0, 0}};
  return reduction;
}

class BiasGradientKernel final : public HostKernel<ConvolutionProblem> {
 public:
  BiasGradientKernel(ConvolutionProblem const& problem, int threads)
      : reduction_(bias_reduction(problem), threads) {}
  void run(ConvolutionProblem::Arguments const& arguments, std::byte* workspace) const override {
    reduction_.run(arguments.dy, arguments.db, workspace);
  }

 private:
  Reduction reduction_;
};

std::string violates_bias_direction(ConvolutionProblem const& problem, Device const&) {
  return problem.direction == ConvolutionDirection::bias ? "" : "the direction must be bias";
}

}  // namespace

template <>
Candidate<ReduceProblem> own_candidate() {
  return {"row_reduction",
          {},
          [](ReduceProblem const& problem, Device const& device) {
            return Reduction(problem, device.threads).workspace_bytes();
          },
          [](Plan<ReduceProblem> const& plan) -> std::unique_ptr<Kernel<ReduceProblem>> {
            return std::make_unique<ReduceKernel>(plan.problem, plan.device.threads);
          }};
}

Candidate<ConvolutionProblem> bias_gradient_candidate() {
  return {"row_reduction",
          {{violates_bias_direction}},
          [](ConvolutionProblem const& problem, Device const& device) {
            return Reduction(bias_reduction(problem), device.threads).workspace_bytes();
          },
          [](Plan<ConvolutionProblem> const& plan) -> std::unique_ptr<Kernel<ConvolutionProblem>> {
            return std::make_unique<BiasGradientKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
