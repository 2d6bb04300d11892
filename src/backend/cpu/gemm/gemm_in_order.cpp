// Matrix products of any data types and strides in which each element adds its products in order of ascending
// k, by instructions that depend neither on its position nor on m, n and the batch
// (docs/decisions/0028-batch-invariance.md).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/gemm/tile_epilogue.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

constexpr Index sum_rows = 4;                // rows of sums in registers
constexpr Index max_m = 64, wanted_n = 128;  // rows of the largest tile, and intended columns
constexpr Index step_k = 256;                // values of k that are packed at a time
constexpr Index lines = 16;                  // rows along k that are transposed at a time
constexpr int vector_bytes = 64;

template <class Real>
constexpr Index columns = vector_bytes / static_cast<Index>(sizeof(Real));

// sums (sum_rows, columns<Real>) += a (depth, sum_rows) * b (depth, columns<Real>); a_rows, b_rows and
// sums_rows are leading dimensions in elements. Operands are padded to full tiles, so no other loop is
// needed.
template <class Real>
COSMATI_ALWAYS_INLINE void add_products(Real const* a, Index a_rows, Real const* b, Index b_rows, Index depth,
                                        Real* sums, Index sums_rows) {
  using Vector __attribute__((vector_size(vector_bytes))) = Real;
  Vector sum[sum_rows];
  for (Index i = 0; i < sum_rows; ++i) std::memcpy(&sum[i], sums + i * sums_rows, vector_bytes);
  for (Index k = 0; k < depth; ++k) {
    Vector row;
    std::memcpy(&row, b + k * b_rows, vector_bytes);
    for (Index i = 0; i < sum_rows; ++i) sum[i] += a[k * a_rows + i] * row;
  }
  for (Index i = 0; i < sum_rows; ++i) std::memcpy(sums + i * sums_rows, &sum[i], vector_bytes);
}

template <class Real>
void add(Real const* a, Index a_rows, Real const* b, Index b_rows, Index depth, Real* sums, Index sums_rows) {
  Clones<add_products<Real>>::call(a, a_rows, b, b_rows, depth, sums, sums_rows);
}

constexpr Index multiple(Index extent, Index of) { return (extent + of - 1) / of * of; }

// The kernel with sums in Real, for operand types whose products Real represents exactly.
template <class Real>
class InOrderKernel final : public HostKernel<GemmProblem> {
 public:
  InOrderKernel(GemmProblem const& problem, Device const& device, bool in_double)
      : product_(problem),
        threads_(device.threads),
        grid_(tiles(device.threads)),
        tail_(product_, grid_, type_of<Real>, in_double),
        padded_m_(multiple(grid_.tile_m, sum_rows)),
        padded_n_(multiple(grid_.tile_n, columns<Real>)) {}

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(threads_) * part_bytes(); }

  void run(GemmProblem::Arguments const& given, std::byte* workspace) const override {
    GemmProblem::Arguments const arguments = product_.arguments(given);
    for_each_tile(grid_, threads_, [&](int part, Tile const& tile) {
      std::byte* next = workspace + static_cast<std::size_t>(part) * part_bytes();
      auto const take = [&](Index elements) {
        auto* const memory = reinterpret_cast<Real*>(next);
        next += bytes_of(elements);
        return memory;
      };
      Real* const sums = take(padded_m_ * padded_n_);
      Real* const a = take(step_k * padded_m_);
      Real* const b = take(step_k * padded_n_);
      Real* const line = take(lines * step_k);
      multiply(arguments, tile, sums, a, b, line);
      for (Index i = 1; i < tile.rows; ++i)
        std::memmove(sums + i * tile.columns, sums + i * padded_n_,
                     static_cast<std::size_t>(tile.columns) * sizeof(Real));
      tail_.run(tile, sums, arguments, next);
    });
  }

 private:
  GemmProblem const& seen() const { return product_.problem; }
  static std::size_t bytes_of(Index elements) {
    return round_up(static_cast<std::size_t>(elements) * sizeof(Real));
  }
  std::size_t part_bytes() const {
    return bytes_of(padded_m_ * padded_n_) + bytes_of(step_k * padded_m_) + bytes_of(step_k * padded_n_) +
           bytes_of(lines * step_k) + round_up(tail_.workspace_bytes());
  }

  // At least as many tiles as threads, if the product is large enough.
  TileGrid tiles(int threads) const {
    Index m = max_m, n = wanted_n;
    for (;;) {
      TileGrid const grid = make_tile_grid(seen().batch(), seen().m(), seen().n(), m, n);
      if (grid.size() >= threads || std::max(grid.tile_m, grid.tile_n) <= 32) return grid;
      (grid.tile_m > grid.tile_n ? m : n) = std::max(grid.tile_m, grid.tile_n) / 2;
    }
  }

  // packed[k * pitch + i] = element `offset` + i * step + k * deep of the operand, or 0 for i >= count.
  static void pack(TensorDescription const& operand, void const* data, Index offset, Index step, Index deep,
                   Index count, Index depth, Real* packed, Index pitch, Real* line) {
    bool const along_depth = std::abs(deep) < std::abs(step);
    if (along_depth) {
      for (Index from = 0; from < pitch; from += lines) {
        Index const here = std::min(lines, pitch - from);
        for (Index i = 0; i < here; ++i)
          if (from + i < count)
            read_row(operand.type, element(operand.type, data, offset + (from + i) * step), deep,
                     line + i * step_k, depth);
          else
            std::fill(line + i * step_k, line + i * step_k + depth, Real(0));
        for (Index k = 0; k < depth; ++k)
          for (Index i = 0; i < here; ++i) packed[k * pitch + from + i] = line[i * step_k + k];
      }
      return;
    }
    for (Index k = 0; k < depth; ++k) {
      Real* const row = packed + k * pitch;
      read_row(operand.type, element(operand.type, data, offset + k * deep), step, row, count);
      std::fill(row + count, row + pitch, Real(0));
    }
  }

  void multiply(GemmProblem::Arguments const& arguments, Tile const& tile, Real* sums, Real* a, Real* b,
                Real* line) const {
    std::fill(sums, sums + padded_m_ * padded_n_, Real(0));
    Index const* const of_a = seen().a.layout.stride;
    Index const* const of_b = seen().b.layout.stride;
    for (Index first = 0; first < seen().k(); first += step_k) {
      Index const depth = std::min(step_k, seen().k() - first);
      pack(seen().a, arguments.a, tile.batch * of_a[0] + tile.row * of_a[1] + first * of_a[2], of_a[1],
           of_a[2], tile.rows, depth, a, padded_m_, line);
      pack(seen().b, arguments.b, tile.batch * of_b[0] + tile.column * of_b[2] + first * of_b[1], of_b[2],
           of_b[1], tile.columns, depth, b, padded_n_, line);
      for (Index column = 0; column < tile.columns; column += columns<Real>)
        for (Index row = 0; row < tile.rows; row += sum_rows)
          add(a + row, padded_m_, b + column, padded_n_, depth, sums + row * padded_n_ + column, padded_n_);
    }
  }

  OrientedGemm product_;
  int threads_;
  TileGrid grid_;
  TileEpilogue tail_;
  Index padded_m_, padded_n_;
};

// Double represents sums of integers exactly.
bool sums_in_double(GemmProblem const& problem) {
  auto const wide = [](TensorDescription const& t) { return t.type == DataType::f64 || is_integer(t.type); };
  return wide(problem.a) || wide(problem.b);
}

bool ends_in_double(GemmProblem const& problem) {
  bool wide = sums_in_double(problem) || (problem.c.present() && problem.c.type == DataType::f64);
  for (TensorDescription const& operand : problem.epilogue.operands)
    wide = wide || operand.type == DataType::f64;
  return wide;
}

constexpr char const* in_order = "in_order";

}  // namespace

Candidate<GemmProblem> in_order_candidate() {
  Candidate<GemmProblem> candidate{
      in_order, {}, nullptr, [](Plan<GemmProblem> const& plan) -> std::unique_ptr<Kernel<GemmProblem>> {
        bool const in_double = ends_in_double(plan.problem);
        if (sums_in_double(plan.problem))
          return std::make_unique<InOrderKernel<double>>(plan.problem, plan.device, in_double);
        return std::make_unique<InOrderKernel<float>>(plan.problem, plan.device, in_double);
      }};
  candidate.offer = [](GemmProblem const& problem, Device const& device, PlanOptions const& options) {
    Offer<GemmProblem> offer;
    if (!options.batch_invariant && options.kernel != in_order)
      offer.refusal = "adds the products of an element in order; only for batch-invariant plans";
    else
      offer.refusal = options.policy.refusal();
    bool const in_double = ends_in_double(problem);
    if (offer.refusal.empty())
      offer.workspace_bytes = sums_in_double(problem)
                                  ? InOrderKernel<double>(problem, device, in_double).workspace_bytes()
                                  : InOrderKernel<float>(problem, device, in_double).workspace_bytes();
    return offer;
  };
  candidate.batch_invariant = true;
  return candidate;
}

}  // namespace cosmati::cpu
