// Matrix products of f64, and of f32 where oneDNN does not compute them, by OpenBLAS: one slice of the result
// per thread or, if the epilogue is more than alpha and beta, tile by tile.
#include <optional>
#include <type_traits>

#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/gemm/blas_form.h"
#include "src/backend/cpu/gemm/openblas.h"
#include "src/backend/cpu/gemm/tile_epilogue.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

template <class Real>
std::string violates_openblas(GemmProblem const& p, Device const& device) {
  constexpr DataType type = std::is_same_v<Real, double> ? DataType::f64 : DataType::f32;
  if (!device.openblas) return "OpenBLAS cannot be opened: " + openblas_description();
  for (TensorDescription const* t : {&p.a, &p.b, &p.d})
    if (t->type != type)
      return "a, b and d are " + std::string(name_of(p.a.type)) + ", " + name_of(p.b.type) + " and " +
             name_of(p.d.type) + "; all three must be " + name_of(type);
  for (Index extent : {p.m(), p.n(), p.k()})
    if (extent > largest_blas_index)
      return "m, n, k are " + std::to_string(p.m()) + ", " + std::to_string(p.n()) + ", " +
             std::to_string(p.k()) + "; each must be below 2^31";
  BlasOperand operand;
  for (TensorDescription const* t : {&p.a, &p.b, &p.d})
    if (read_blas_operand(*t, operand) && operand.leading > largest_blas_index)
      return "rows or columns of " + to_string(*t) + " are " + std::to_string(operand.leading) +
             " elements apart; the distance must be below 2^31";
  return violates_blas_strides(p, device);
}

// The tile of one OpenBLAS call when an epilogue follows; it has enough rows to amortize the packing of b.
constexpr Index tile_rows = 512, tile_columns = 2048;

template <class Real>
class OpenblasKernel final : public HostKernel<GemmProblem> {
 public:
  OpenblasKernel(GemmProblem const& problem, Device const& device)
      : product_(problem), in_blas_(read_blas_form(problem.epilogue.expression, form_)) {
    bool const small = problem.m() * problem.n() * problem.k() < 32 * 32 * 32;
    threads_ = small && problem.batch() < device.threads ? 1 : device.threads;
    read_blas_operand(seen().a, a_);
    read_blas_operand(seen().b, b_);
    read_blas_operand(seen().d, d_);
    if (in_blas_) return;
    grid_ = tiles();
    tail_.emplace(product_, grid_, seen().d.type, true);
  }

  std::size_t workspace_bytes() const {
    return tail_ ? static_cast<std::size_t>(threads_) * part_bytes() : 0;
  }

  void run(GemmProblem::Arguments const& given, std::byte* workspace) const override {
    GemmProblem::Arguments const arguments = product_.arguments(given);
    if (in_blas_) return run_blas(arguments);
    for_each_tile(grid_, threads_, [&](int part, Tile const& tile) {
      std::byte* const own = workspace + static_cast<std::size_t>(part) * part_bytes();
      multiply(arguments, tile, reinterpret_cast<Real*>(own), tile.columns, 1, 0);
      tail_->run(tile, own, arguments, own + sums_bytes());
    });
  }

 private:
  GemmProblem const& seen() const { return product_.problem; }
  std::size_t sums_bytes() const {
    return round_up(static_cast<std::size_t>(grid_.tile_m * grid_.tile_n) * sizeof(Real));
  }
  std::size_t part_bytes() const { return sums_bytes() + round_up(tail_->workspace_bytes()); }

  // At least as many tiles as threads, if the product is large enough.
  TileGrid tiles() const {
    Index rows = tile_rows, columns = tile_columns;
    for (;;) {
      TileGrid const grid = make_tile_grid(seen().batch(), seen().m(), seen().n(), rows, columns);
      if (grid.size() >= threads_ || std::max(grid.tile_m, grid.tile_n) <= 32) return grid;
      (grid.tile_m > grid.tile_n ? rows : columns) = std::max(grid.tile_m, grid.tile_n) / 2;
    }
  }

  // alpha * a * b + beta * c, divided along the batch if it is large enough, otherwise along the larger of m
  // and n.
  void run_blas(GemmProblem::Arguments const& arguments) const {
    constexpr Index grain = 16;
    double const alpha = form_.alpha.value(arguments.scalars);
    double const beta = seen().c.present() ? form_.beta.value(arguments.scalars) : 0;
    if (beta != 0 && arguments.c != arguments.d)
      convert_elements(seen().c, arguments.c, seen().d, arguments.d, threads_);
    Index const batch = seen().batch(), m = seen().m(), n = seen().n();
    parallel_parts(threads_, [&](int part, int count) {
      Range matrices{0, batch}, rows{0, m}, columns{0, n};
      if (batch >= 2 * threads_)
        matrices = share(batch, part, count);
      else if (m >= n)
        rows = share(m, part, count, grain);
      else
        columns = share(n, part, count, grain);
      for (Index i = matrices.first; i < matrices.last; ++i) {
        Tile const slice{i, rows.first, columns.first, rows.last - rows.first, columns.last - columns.first};
        Real* const d = static_cast<Real*>(arguments.d) + i * seen().d.layout.stride[0];
        multiply(arguments, slice, d + slice.row * d_.leading + slice.column, d_.leading, alpha, beta);
      }
    });
  }

  // Computes one tile; `d` points to its first element and has leading dimension `leading`.
  void multiply(GemmProblem::Arguments const& arguments, Tile const& tile, Real* d, Index leading,
                double alpha, double beta) const {
    auto const* const a = static_cast<Real const*>(arguments.a) + tile.batch * seen().a.layout.stride[0] +
                          tile.row * (a_.letter == 'N' ? a_.leading : 1);
    auto const* const b = static_cast<Real const*>(arguments.b) + tile.batch * seen().b.layout.stride[0] +
                          tile.column * (b_.letter == 'N' ? 1 : b_.leading);
    openblas_product(a_.letter == 'T', b_.letter == 'T', tile.rows, tile.columns, seen().k(), alpha, a,
                     a_.leading, b, b_.leading, beta, d, leading);
  }

  OrientedGemm product_;
  int threads_;
  BlasForm form_;
  bool in_blas_;
  BlasOperand a_, b_, d_;
  TileGrid grid_{};
  std::optional<TileEpilogue> tail_;
};

template <class Real>
Candidate<GemmProblem> candidate_of(char const* name) {
  return {name,
          {{violates_openblas<Real>}},
          [](GemmProblem const& problem, Device const& device) {
            return OpenblasKernel<Real>(problem, device).workspace_bytes();
          },
          [](Plan<GemmProblem> const& plan) -> std::unique_ptr<Kernel<GemmProblem>> {
            return std::make_unique<OpenblasKernel<Real>>(plan.problem, plan.device);
          }};
}

}  // namespace

Candidate<GemmProblem> openblas_candidate() { return candidate_of<double>("openblas"); }
Candidate<GemmProblem> openblas_f32_candidate() { return candidate_of<float>("openblas_f32"); }

}  // namespace cosmati::cpu
