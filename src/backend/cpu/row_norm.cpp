// Layer, RMS and group normalization and their gradients, row by row, for any types.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

constexpr Index small_norm = 1 << 12;  // elements processed in the time needed to start a second thread
constexpr int lanes = 16;      // independent sums, in an order that does not depend on the instruction set
constexpr Index block = 1024;  // elements per block; a block is summed in Real, blocks are summed in double

// The sum of term(i) for i in [0, count).
template <class Real, class Term>
COSMATI_ALWAYS_INLINE double sum_of(Index count, Term const& term) {
  double total = 0;
  for (Index first = 0; first < count; first += block) {
    Index const last = std::min(count, first + block);
    Real lane[lanes] = {};
    Index i = first;
    for (; i + lanes <= last; i += lanes)
      for (int l = 0; l < lanes; ++l) lane[l] += term(i + l);
    for (int l = 0; i + l < last; ++l) lane[l] += term(i + l);
    for (int l = 0; l < lanes; ++l) total += static_cast<double>(lane[l]);
  }
  return total;
}

template <class Real>
COSMATI_ALWAYS_INLINE double sum_row(Real const* x, Index count) {
  return sum_of<Real>(count, [=](Index i) { return x[i]; });
}
template <class Real>
COSMATI_ALWAYS_INLINE double sum_differences(Real const* x, Real mean, Index count) {
  return sum_of<Real>(count, [=](Index i) { return x[i] - mean; });
}
template <class Real>
COSMATI_ALWAYS_INLINE double sum_squares(Real const* x, Real mean, Index count) {
  return sum_of<Real>(count, [=](Index i) { return (x[i] - mean) * (x[i] - mean); });
}

// A row with its statistics; absent parameters are null.
template <class Real>
struct Row {
  Real const* x;
  Real const* dy;
  Real const* weight;
  Real const* bias;
  // The mean is mean + correction, since the rounding error of a large mean may exceed the deviations.
  Real mean, correction, inverse;
  Index count;
};

template <class Real>
COSMATI_ALWAYS_INLINE void normalize(Row<Real> row, Real* y) {
  if (row.weight == nullptr && row.bias == nullptr) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < row.count; ++i) y[i] = (row.x[i] - row.mean - row.correction) * row.inverse;
  } else if (row.bias == nullptr) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < row.count; ++i)
      y[i] = (row.x[i] - row.mean - row.correction) * row.inverse * row.weight[i];
  } else if (row.weight == nullptr) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < row.count; ++i)
      y[i] = (row.x[i] - row.mean - row.correction) * row.inverse + row.bias[i];
  } else {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < row.count; ++i)
      y[i] = (row.x[i] - row.mean - row.correction) * row.inverse * row.weight[i] + row.bias[i];
  }
}

// g = dy * weight, or dy without weights
template <class Real>
COSMATI_ALWAYS_INLINE void weigh(Row<Real> row, Real* g) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < row.count; ++i) g[i] = row.dy[i] * row.weight[i];
}
template <class Real>
COSMATI_ALWAYS_INLINE double sum_with_u(Row<Real> row, Real const* g) {
  return sum_of<Real>(row.count, [=](Index i) { return g[i] * ((row.x[i] - row.mean) * row.inverse); });
}
template <class Real>
COSMATI_ALWAYS_INLINE void add_parameters(Row<Real> row, Real* dweight, Real* dbias) {
  if (dweight != nullptr) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < row.count; ++i) dweight[i] += row.dy[i] * ((row.x[i] - row.mean) * row.inverse);
  }
  if (dbias != nullptr) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < row.count; ++i) dbias[i] += row.dy[i];
  }
}
template <class Real>
COSMATI_ALWAYS_INLINE void gradient(Row<Real> row, Real const* g, Real mean, Real mean_with_u, Real* dx) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < row.count; ++i)
    dx[i] = row.inverse * (g[i] - mean - (row.x[i] - row.mean) * row.inverse * mean_with_u);
}

Shape row_shape(RowNormProblem const& problem) {
  Shape shape;
  for (int d = problem.axis; d < problem.x.layout.rank(); ++d) shape[shape.rank++] = problem.x.extent(d);
  return shape;
}
// The elements of a row, in row-major order, as one axis of the tensor; rank 2 or more if they cannot be
// merged.
LoopNest<2> nest_of_row(RowNormProblem const& problem, TensorDescription const& tensor) {
  Layout layout = row_major(row_shape(problem));
  for (int d = 0; d < layout.rank(); ++d) layout.stride[d] = tensor.layout.stride[d + problem.axis];
  return make_loop_nest<2>({row_major(row_shape(problem)), layout});
}

template <class Real>
class RowNormKernel final : public HostKernel<RowNormProblem> {
 public:
  RowNormKernel(RowNormProblem const& problem, int threads)
      : problem_(in_rows(problem)),
        forward_(problem.direction == Direction::forward),
        grouped_(problem.mode == RowNormMode::group),
        length_(row_shape(problem_).size()),
        repeat_(grouped_ ? length_ / problem_.x.extent(2) : 1),
        parameters_(grouped_ ? problem.x.extent(1) : length_),
        threads_(problem_.x.layout.size() < small_norm ? 1 : threads) {
    Layout const x = rows_of(problem_.x);
    auto const rows_or_x = [&](TensorDescription const& tensor) {
      return tensor.present() ? rows_of(tensor) : x;
    };
    Layout first = x;  // offset of a row's first parameter in the array of all of them
    std::fill_n(first.stride, max_rank, Index{0});
    if (grouped_) first.stride[1] = problem_.x.extent(2);
    nest_ = make_loop_nest<7>({x, rows_of(problem_.y), rows_of(forward_ ? problem_.y : problem_.dx),
                               rows_or_x(problem_.statistics), rows_or_x(problem_.weight),
                               rows_or_x(problem_.bias), first});
    // The sums of the parameters' gradients: first within chunks of rows, whose number depends only on the
    // problem and not on the number of threads, then over the chunks in order.
    sums_ = (problem.dweight.present() ? 1 : 0) + (problem.dbias.present() ? 1 : 0);
    chunks_ = sums_ > 0 ? std::clamp<Index>(nest_.size() / 4, 1, 64) : std::max<Index>(1, nest_.size());
  }

  std::size_t workspace_bytes() const {
    std::size_t const sums = static_cast<std::size_t>(sums_ > 0 ? chunks_ * sums_ : 0);
    return row_bytes() * (2 + buffers() * static_cast<std::size_t>(threads_)) + sum_bytes() * sums;
  }

  void run(RowNormProblem::Arguments const& arguments, std::byte* workspace) const override {
    Real* const parameters = reinterpret_cast<Real*>(workspace);
    auto const room = [&](std::size_t row) {
      return reinterpret_cast<Real*>(workspace + (2 + row) * row_bytes());
    };
    std::byte* const sums = workspace + (2 + buffers() * static_cast<std::size_t>(threads_)) * row_bytes();
    auto const sum_at = [&](Index number) {
      return reinterpret_cast<Real*>(sums + static_cast<std::size_t>(number) * sum_bytes());
    };
    Row<Real> common{};
    common.count = length_;
    // With groups, each row reads its own parameters.
    if (problem_.weight.present() && !grouped_)
      common.weight = read(problem_.weight, arguments.weight, 0, parameters);
    if (problem_.bias.present() && !grouped_)
      common.bias = read(problem_.bias, arguments.bias, 0, reinterpret_cast<Real*>(workspace + row_bytes()));
    parallel_parts(threads_, [&](int part, int parts) {
      std::array<Real*, max_buffers> memory{};
      for (std::size_t b = 0; b < buffers(); ++b)
        memory[b] = room(static_cast<std::size_t>(part) * buffers() + b);
      auto const [first, last] = share(chunks_, part, parts);
      for (Index chunk = first; chunk < last; ++chunk) {
        Index const begin = nest_.size() * chunk / chunks_, end = nest_.size() * (chunk + 1) / chunks_;
        Real *dweight = nullptr, *dbias = nullptr;
        if (problem_.dweight.present()) dweight = sum_at(chunk * sums_);
        if (problem_.dbias.present()) dbias = sum_at(chunk * sums_ + sums_ - 1);
        for (Real* sum : {dweight, dbias})
          if (sum != nullptr) std::fill_n(sum, parameters_, Real(0));
        for (Index row = begin; row < end; ++row)
          forward_ ? forward(arguments, row, common, memory)
                   : backward(arguments, row, common, memory, dweight, dbias);
      }
    });
    for (int which = 0; which < sums_; ++which) {
      Real* const total = sum_at(which);
      for (Index chunk = 1; chunk < chunks_; ++chunk) {
        Real const* const other = sum_at(chunk * sums_ + which);
        for (Index i = 0; i < parameters_; ++i) total[i] += other[i];
      }
      bool const weight = which == 0 && problem_.dweight.present();
      TensorDescription const& tensor = weight ? problem_.dweight : problem_.dbias;
      void* const data = weight ? arguments.dweight : arguments.dbias;
      if (grouped_)
        write_row(total, tensor.type, data, tensor.layout.stride[2], parameters_);
      else
        write(total, tensor, data, 0);
    }
  }

 private:
  static constexpr std::size_t max_buffers = 5;
  std::size_t buffers() const { return grouped_ ? max_buffers : 3; }
  std::size_t sum_bytes() const { return round_up(static_cast<std::size_t>(parameters_) * sizeof(Real)); }

  Layout rows_of(TensorDescription const& tensor) const {
    Layout layout = tensor.layout;
    for (int d = problem_.axis; d < layout.rank(); ++d) layout.shape[d] = 1;
    return layout;
  }
  std::size_t row_bytes() const { return round_up(static_cast<std::size_t>(length_) * sizeof(Real)); }
  bool as_it_is(TensorDescription const& tensor, LoopNest<2> const& nest) const {
    return tensor.type == type_of<Real> && (length_ == 1 || (nest.rank == 1 && nest.inner_stride(1) == 1));
  }
  // The row itself if its type and stride are suitable, otherwise a copy in `to`.
  Real const* read(TensorDescription const& tensor, void const* data, Index offset, Real* to) const {
    LoopNest<2> const nest = nest_of_row(problem_, tensor);
    if (as_it_is(tensor, nest)) return static_cast<Real const*>(data) + offset;
    for (Index first = 0; first < length_; first += nest.inner())
      read_row(tensor.type, element(tensor.type, data, offset + nest.offset(1, first)), nest.inner_stride(1),
               to + first, nest.inner());
    return to;
  }
  Real* place(TensorDescription const& tensor, void* data, Index offset, Real* otherwise) const {
    return as_it_is(tensor, nest_of_row(problem_, tensor)) ? static_cast<Real*>(data) + offset : otherwise;
  }
  void write(Real const* from, TensorDescription const& tensor, void* data, Index offset) const {
    LoopNest<2> const nest = nest_of_row(problem_, tensor);
    if (as_it_is(tensor, nest) && from == static_cast<Real*>(data) + offset) return;
    for (Index first = 0; first < length_; first += nest.inner())
      write_row(from + first, tensor.type, element(tensor.type, data, offset + nest.offset(1, first)),
                nest.inner_stride(1), nest.inner());
  }

  // The weights and the bias of the channels, for each element of a row.
  void add_parameters_of(Index number, RowNormProblem::Arguments const& arguments, Row<Real>& row,
                         std::array<Real*, max_buffers> const& memory) const {
    if (!grouped_) return;
    if (problem_.weight.present())
      row.weight = read(problem_.weight, arguments.weight, nest_.offset(4, number), memory[3]);
    if (problem_.bias.present())
      row.bias = read(problem_.bias, arguments.bias, nest_.offset(5, number), memory[4]);
  }
  // Adds the sums of each channel of a row; `first` is its first channel.
  void add_channels(Row<Real> row, Index first, Real* dweight, Real* dbias) const {
    Index const channels = row.count / repeat_;
    row.count = repeat_;
    for (Index c = first; c < first + channels; ++c, row.x += repeat_, row.dy += repeat_) {
      if (dweight != nullptr) dweight[c] += static_cast<Real>(Clones<sum_with_u<Real>>::call(row, row.dy));
      if (dbias != nullptr) dbias[c] += static_cast<Real>(Clones<sum_row<Real>>::call(row.dy, row.count));
    }
  }

  void forward(RowNormProblem::Arguments const& arguments, Index number, Row<Real> row,
               std::array<Real*, max_buffers> const& memory) const {
    add_parameters_of(number, arguments, row, memory);
    row.x = read(problem_.x, arguments.x, nest_.offset(0, number), memory[0]);
    auto const count = static_cast<double>(length_);
    double mean = 0, correction = 0;
    if (problem_.centered()) {
      row.mean = static_cast<Real>(Clones<sum_row<Real>>::call(row.x, length_) / count);
      correction = Clones<sum_differences<Real>>::call(row.x, row.mean, length_) / count;
      if (!std::isfinite(correction)) correction = 0;  // the mean is infinite
      mean = static_cast<double>(row.mean) + correction;
    }
    row.correction = static_cast<Real>(correction);
    double squares =
        Clones<sum_squares<Real>>::call(row.x, row.mean, length_) - count * correction * correction;
    if (squares < 0) squares = 0;
    double const inverse = 1 / std::sqrt(squares / count + problem_.epsilon);
    row.inverse = static_cast<Real>(inverse);
    Index const offset = nest_.offset(1, number);
    Real* const y = place(problem_.y, arguments.y, offset, memory[1]);
    Clones<normalize<Real>>::call(row, y);
    write(y, problem_.y, arguments.y, offset);
    if (!problem_.statistics.present()) return;
    Index const at = nest_.offset(3, number);
    DataType const type = problem_.statistics.type;
    if (problem_.centered()) store(type, arguments.saved_mean, at, mean);
    store(type, arguments.saved_inverse, at, inverse);
  }

  void backward(RowNormProblem::Arguments const& arguments, Index number, Row<Real> row,
                std::array<Real*, max_buffers> const& memory, Real* dweight, Real* dbias) const {
    add_parameters_of(number, arguments, row, memory);
    row.x = read(problem_.x, arguments.x, nest_.offset(0, number), memory[0]);
    row.dy = read(problem_.y, arguments.dy, nest_.offset(1, number), memory[1]);
    Index const at = nest_.offset(3, number);
    DataType const type = problem_.statistics.type;
    row.mean = problem_.centered() ? static_cast<Real>(load(type, arguments.mean, at)) : Real(0);
    row.inverse = static_cast<Real>(load(type, arguments.inverse, at));
    if (grouped_)
      add_channels(row, nest_.offset(6, number), dweight, dbias);
    else
      Clones<add_parameters<Real>>::call(row, dweight, dbias);
    Real const* g = row.dy;
    if (row.weight != nullptr) {
      Clones<weigh<Real>>::call(row, memory[2]);
      g = memory[2];
    }
    auto const count = static_cast<double>(length_);
    double const mean = problem_.centered() ? Clones<sum_row<Real>>::call(g, length_) / count : 0;
    double const mean_with_u = Clones<sum_with_u<Real>>::call(row, g) / count;
    Index const offset = nest_.offset(2, number);
    Real* const dx = place(problem_.dx, arguments.dx, offset, memory[1]);
    Clones<gradient<Real>>::call(row, g, static_cast<Real>(mean), static_cast<Real>(mean_with_u), dx);
    write(dx, problem_.dx, arguments.dx, offset);
  }

  RowNormProblem problem_;
  bool forward_, grouped_;
  Index length_;
  Index repeat_, parameters_;  // adjacent elements of a row that share a parameter; all parameters
  Index chunks_ = 1;
  int threads_, sums_ = 0;
  LoopNest<7> nest_;  // over the rows: x, y or dy, y or dx, statistics, weight, bias, first parameter
};

bool in_double(RowNormProblem const& problem) {
  bool result = false;
  RowNormProblem::visit_tensors(problem, [&](char const*, Role, TensorDescription const& tensor, auto) {
    result = result || tensor.type == DataType::f64 || tensor.type == DataType::s32;
  });
  return result;
}

std::string violates_rows(RowNormProblem const& problem, Device const&) {
  if (problem.mode == RowNormMode::group) return {};
  RowNormProblem const rows = in_rows(problem);
  std::vector<TensorDescription const*> given;
  RowNormProblem::visit_tensors(
      problem, [&](char const*, Role, TensorDescription const& tensor, auto) { given.push_back(&tensor); });
  std::string violation;
  std::size_t next = 0;
  RowNormProblem::visit_tensors(rows, [&](char const* name, Role, TensorDescription const& tensor, auto) {
    TensorDescription const& described = *given[next++];
    if (nest_of_row(rows, tensor).rank > 1 && violation.empty())
      violation = std::string(name) + " is " + to_string(described) + "; a row must have one stride";
  });
  return violation;
}

}  // namespace

template <>
Candidate<RowNormProblem> own_candidate() {
  return {"by_rows",
          {{violates_rows}},
          [](RowNormProblem const& problem, Device const& device) {
            return in_double(problem) ? RowNormKernel<double>(problem, device.threads).workspace_bytes()
                                      : RowNormKernel<float>(problem, device.threads).workspace_bytes();
          },
          [](Plan<RowNormProblem> const& plan) -> std::unique_ptr<Kernel<RowNormProblem>> {
            if (in_double(plan.problem))
              return std::make_unique<RowNormKernel<double>>(plan.problem, plan.device.threads);
            return std::make_unique<RowNormKernel<float>>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
