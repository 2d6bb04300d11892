// Pooling of any data type and layout, with indices: line by line, tap by tap.
#include <algorithm>
#include <cmath>
#include <memory>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/pooling_lines.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

constexpr Index pooling_chunk = 256;  // elements of a line that are pooled at a time

// Replaces the best value by a larger one or by the first NaN. best_tap = -1: no value yet.
template <class Real>
COSMATI_ALWAYS_INLINE void take_larger(Real const* values, int tap, Real* best, int* best_tap, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) {
    bool const larger =
        best_tap[i] < 0 || values[i] > best[i] || (values[i] != values[i] && best[i] == best[i]);
    best[i] = larger ? values[i] : best[i];
    best_tap[i] = larger ? tap : best_tap[i];
  }
}
template <class Real>
void join_maximum(Real const* values, int tap, Real* best, int* best_tap, Index count) {
  Clones<take_larger<Real>>::call(values, tap, best, best_tap, count);
}

template <class Real>
void add_values(Real const* values, Real* sum, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) sum[i] += values[i];
}

void read_integers(DataType type, void const* source, Index stride, int* out, Index count) {
  if (type == DataType::u8)
    for (Index i = 0; i < count; ++i) out[i] = static_cast<u8 const*>(source)[i * stride];
  else
    for (Index i = 0; i < count; ++i) out[i] = static_cast<int const*>(source)[i * stride];
}

template <class Real>
class PoolingKernel final : public HostKernel<PoolingProblem> {
 public:
  PoolingKernel(PoolingProblem const& problem, int threads)
      : problem_(problem),
        lines_(problem),
        threads_(problem.x.layout.size() < (1 << 13) ? 1 : threads),
        taps_(describe(DataType::s32, problem.y.layout)) {}

  // The backward pass from x keeps the tap of each maximum in the workspace.
  std::size_t workspace_bytes() const {
    bool const needs_taps = problem_.direction == Direction::backward && problem_.backward_needs_x();
    return needs_taps ? round_up(static_cast<std::size_t>(taps_.bytes())) : 0;
  }

  void run(PoolingProblem::Arguments const& arguments, std::byte* workspace) const override {
    if (problem_.direction == Direction::forward) {
      for_each_line(problem_.y.extent(2), [&](Place const& place) { pool(arguments, place, nullptr); });
      return;
    }
    void* const taps = problem_.backward_needs_x() ? workspace : nullptr;
    if (taps != nullptr)
      for_each_line(problem_.y.extent(2), [&](Place const& place) { pool(arguments, place, taps); });
    for_each_line(problem_.x.extent(2), [&](Place const& place) { spread(arguments, place, taps); });
  }

 private:
  // The first element of a piece of a line: of y in the forward pass, of x in the backward pass.
  struct Place {
    Index at[4];  // n, c, row, column
    Index count;  // elements along the line
  };

  // Divides the lines among the threads; rows of one plane are consecutive.
  template <class Visit>
  void for_each_line(Index rows, Visit const& visit) const {
    bool const along_columns = lines_.along == 3;
    Index const outer =
        along_columns ? problem_.x.extent(0) * problem_.x.extent(1) : problem_.x.extent(lines_.across);
    Index const length = along_columns ? 1 : problem_.x.extent(lines_.along);
    Index const pieces = (length + pooling_chunk - 1) / pooling_chunk;
    parallel_parts(threads_, [&](int part, int parts) {
      auto const [first, last] = share(outer * pieces * rows, part, parts);
      for (Index i = first; i < last; ++i) {
        Place place{{0, 0, i % rows, 0}, 0};
        Index const rest = i / rows;
        if (along_columns) {
          place.at[0] = rest / problem_.x.extent(1);
          place.at[1] = rest % problem_.x.extent(1);
        } else {
          place.at[lines_.across] = rest / pieces;
          place.at[lines_.along] = rest % pieces * pooling_chunk;
          place.count = std::min(pooling_chunk, length - place.at[lines_.along]);
        }
        visit(place);
      }
    });
  }

  static Index offset(TensorDescription const& t, Index n, Index c, Index row, Index column) {
    return t.layout.offset(n, c, row, column);
  }

  // Pools one row of y: in pieces along the columns, or column by column along images or channels.
  void pool(PoolingProblem::Arguments const& arguments, Place place, void* taps) const {
    Index const columns = problem_.y.extent(3);
    if (lines_.along == 3) {
      for (place.at[3] = 0; place.at[3] < columns; place.at[3] += pooling_chunk) {
        place.count = std::min(pooling_chunk, columns - place.at[3]);
        pool_piece(arguments, place, taps);
      }
    } else {
      for (place.at[3] = 0; place.at[3] < columns; ++place.at[3]) pool_piece(arguments, place, taps);
    }
  }

  // Calls tap(number, h, position in the piece, offset of its first value in x, count) for the taps of a
  // piece of y.
  template <class Tap>
  void for_each_tap(Place const& place, Tap const& tap) const {
    auto const& [n, c, p, q] = place.at;
    for (Index r = 0; r < lines_.rows.taps; ++r) {
      Index const h = lines_.rows.place(p, r);
      if (!lines_.rows.inside(h)) continue;
      for (Index s = 0; s < lines_.columns.taps; ++s) {
        int const number = static_cast<int>(r * lines_.columns.taps + s);
        Index first = 0, last = place.count;
        if (lines_.along == 3) {
          lines_.columns.windows_inside(s, first, last);
          first = std::max(first, q) - q;
          last = std::min(last, q + place.count) - q;
        } else if (!lines_.columns.inside(lines_.columns.place(q, s))) {
          continue;
        }
        if (first >= last) continue;
        Index const w = lines_.columns.place(lines_.along == 3 ? q + first : q, s);
        tap(number, first, offset(problem_.x, n, c, h, w), last - first);
      }
    }
  }

  void pool_piece(PoolingProblem::Arguments const& arguments, Place const& place, void* taps) const {
    alignas(64) Real best[pooling_chunk];
    alignas(64) Real values[pooling_chunk];
    alignas(64) int best_tap[pooling_chunk];
    DataType const type = problem_.x.type;
    Index const step =
        problem_.x.layout.stride[lines_.along] * (lines_.along == 3 ? lines_.columns.stride : 1);
    std::fill(best, best + place.count, Real(0));
    std::fill(best_tap, best_tap + place.count, -1);
    bool const maximum = problem_.mode == PoolingMode::max;
    for_each_tap(place, [&](int tap, Index first, Index at, Index count) {
      read_row(type, element(type, arguments.x, at), step, values, count);
      if (maximum)
        join_maximum(values, tap, best + first, best_tap + first, count);
      else
        add_values(values, best + first, count);
    });
    auto const& [n, c, p, q] = place.at;
    Index const y_at = offset(problem_.y, n, c, p, q);
    if (taps != nullptr) {
      int* const out = static_cast<int*>(taps) + y_at;
      for (Index i = 0; i < place.count; ++i) out[i * problem_.y.layout.stride[lines_.along]] = best_tap[i];
      return;
    }
    if (!maximum)
      for (Index i = 0; i < place.count; ++i) best[i] /= divisor(p, lines_.along == 3 ? q + i : q);
    write_row(best, problem_.y.type, element(problem_.y.type, arguments.y, y_at),
              problem_.y.layout.stride[lines_.along], place.count);
    if (problem_.indices.present()) write_indices(arguments, place, best_tap);
  }

  Real divisor(Index p, Index q) const {
    bool const with_padding = problem_.mode == PoolingMode::average_with_padding;
    return static_cast<Real>(lines_.rows.divisor(p, with_padding) * lines_.columns.divisor(q, with_padding));
  }

  void write_indices(PoolingProblem::Arguments const& arguments, Place const& place, int const* taps) const {
    auto const& [n, c, p, q] = place.at;
    TensorDescription const& indices = problem_.indices;
    Index const start = offset(indices, n, c, p, q), step = indices.layout.stride[lines_.along];
    for (Index i = 0; i < place.count; ++i) {
      Index const r = taps[i] / lines_.columns.taps, s = taps[i] % lines_.columns.taps;
      if (indices.type == DataType::u8)
        static_cast<u8*>(arguments.indices)[start + i * step] = static_cast<u8>(taps[i]);
      else
        static_cast<int*>(arguments.indices)[start + i * step] =
            static_cast<int>(lines_.rows.place(p, r) * lines_.columns.image +
                             lines_.columns.place(lines_.along == 3 ? q + i : q, s));
    }
  }

  // Computes one row of dx by gathering from the windows that contain its elements.
  void spread(PoolingProblem::Arguments const& arguments, Place place, void const* taps) const {
    Index const columns = problem_.x.extent(3);
    if (lines_.along == 3) {
      for (place.at[3] = 0; place.at[3] < columns; place.at[3] += pooling_chunk) {
        place.count = std::min(pooling_chunk, columns - place.at[3]);
        spread_piece(arguments, place, taps);
      }
    } else {
      for (place.at[3] = 0; place.at[3] < columns; ++place.at[3]) spread_piece(arguments, place, taps);
    }
  }

  void spread_piece(PoolingProblem::Arguments const& arguments, Place const& place, void const* taps) const {
    alignas(64) Real sum[pooling_chunk] = {};
    auto const& [n, c, h, w] = place.at;
    for (Index r = 0; r < lines_.rows.taps; ++r) {
      Index const p = lines_.rows.window_at(h, r);
      if (p < 0) continue;
      for (Index s = 0; s < lines_.columns.taps; ++s) {
        if (lines_.along != 3) {
          Index const q = lines_.columns.window_at(w, s);
          if (q >= 0) add_windows(arguments, taps, {{n, c, p, q}, place.count}, r, s, sum, 1);
          continue;
        }
        Index first, last;
        lines_.columns.windows_inside(s, first, last);
        Index const shift = lines_.columns.place(0, s);  // window q reads column q * stride + shift
        Index const stride = lines_.columns.stride;
        if (w > shift) first = std::max(first, (w - shift + stride - 1) / stride);
        last = w + place.count <= shift ? first : std::min(last, (w + place.count - 1 - shift) / stride + 1);
        if (first < last)
          add_windows(arguments, taps, {{n, c, p, first}, last - first}, r, s,
                      sum + lines_.columns.place(first, s) - w, lines_.columns.stride);
      }
    }
    write_row(sum, problem_.x.type, element(problem_.x.type, arguments.dx, offset(problem_.x, n, c, h, w)),
              problem_.x.layout.stride[lines_.along], place.count);
  }

  // Adds the gradients that windows pass to their tap (r, s) to sum[i * step].
  void add_windows(PoolingProblem::Arguments const& arguments, void const* taps, Place const& windows,
                   Index r, Index s, Real* sum, Index step) const {
    alignas(64) Real dy[pooling_chunk];
    alignas(64) int chosen[pooling_chunk];
    auto const& [n, c, p, q] = windows.at;
    TensorDescription const& y = problem_.y;
    read_row(y.type, element(y.type, arguments.dy, offset(y, n, c, p, q)), y.layout.stride[lines_.along], dy,
             windows.count);
    if (problem_.mode != PoolingMode::max) {
      for (Index i = 0; i < windows.count; ++i)
        sum[i * step] += dy[i] / divisor(p, lines_.along == 3 ? q + i : q);
      return;
    }
    TensorDescription const& from = taps != nullptr ? taps_ : problem_.indices;
    void const* const data = taps != nullptr ? taps : arguments.saved_indices;
    read_integers(from.type, element(from.type, data, offset(from, n, c, p, q)),
                  from.layout.stride[lines_.along], chosen, windows.count);
    bool const by_tap = taps != nullptr || from.type == DataType::u8;
    Index const row = lines_.rows.place(p, r) * lines_.columns.image;
    for (Index i = 0; i < windows.count; ++i) {
      Index const mine =
          by_tap ? r * lines_.columns.taps + s : row + lines_.columns.place(lines_.along == 3 ? q + i : q, s);
      sum[i * step] += chosen[i] == mine ? dy[i] : Real(0);
    }
  }

  PoolingProblem problem_;
  PoolingLines lines_;
  int threads_;
  TensorDescription taps_;
};

bool in_double(PoolingProblem const& problem) {
  for (TensorDescription const* t : {&problem.x, &problem.y})
    if (t->type == DataType::f64 || t->type == DataType::s32) return true;
  return false;
}

}  // namespace

template <>
Candidate<PoolingProblem> own_candidate() {
  return {"by_lines",
          {},
          [](PoolingProblem const& problem, Device const& device) {
            return PoolingKernel<float>(problem, device.threads).workspace_bytes();
          },
          [](Plan<PoolingProblem> const& plan) -> std::unique_ptr<Kernel<PoolingProblem>> {
            if (in_double(plan.problem))
              return std::make_unique<PoolingKernel<double>>(plan.problem, plan.device.threads);
            return std::make_unique<PoolingKernel<float>>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
