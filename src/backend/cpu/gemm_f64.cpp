// Double-precision matrix products: OpenBLAS on slices of the result, one for each thread.
#include <optional>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/blas_form.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/openblas.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/parallel.h"
#include "src/backend/cpu/pointwise.h"

namespace cosmati::cpu {
namespace {

constexpr Index largest_int = 2147483647;

std::string violates_openblas(GemmProblem const& p, Device const& device) {
  if (!device.openblas) return "OpenBLAS cannot be opened: " + openblas_description();
  for (TensorDescription const* t : {&p.a, &p.b, &p.d})
    if (t->type != DataType::f64)
      return "a, b and d are " + std::string(name_of(p.a.type)) + ", " + name_of(p.b.type) + " and " +
             name_of(p.d.type) + "; all three must be f64";
  for (Index extent : {p.m(), p.n(), p.k()})
    if (extent > largest_int)
      return "m, n, k are " + std::to_string(p.m()) + ", " + std::to_string(p.n()) + ", " +
             std::to_string(p.k()) + "; each must be below 2^31";
  return violates_blas_strides(p, device);
}

class OpenblasKernel final : public HostKernel<GemmProblem> {
 public:
  OpenblasKernel(GemmProblem const& problem, Device const& device)
      : problem_(problem),
        threads_(device.threads),
        in_blas_(read_blas_form(problem.epilogue.expression, form_)) {
    read_blas_operand(problem_.a, a_);
    read_blas_operand(problem_.b, b_);
    read_blas_operand(problem_.d, d_);
    if (in_blas_) return;
    // acc in the workspace: c or an operand may lie where d does.
    accumulator_ = {DataType::f64, row_major(problem.d.shape())};
    d_ = {'N', std::max<Index>(problem.n(), 1)};
    tail_.emplace(epilogue_pointwise(problem.epilogue, epilogue::gemm_indices, accumulator_, problem.c,
                                     problem.d, true),
                  threads_);
  }

  std::size_t workspace_bytes() const { return tail_ ? accumulator_bytes() + tail_->workspace_bytes() : 0; }

  void run(GemmProblem::Arguments const& arguments, std::byte* workspace) const override {
    if (in_blas_) {
      double const beta = problem_.c.present() ? form_.beta.value(arguments.scalars) : 0;
      if (beta != 0 && arguments.c != arguments.d)
        convert_elements(problem_.c, arguments.c, problem_.d, arguments.d, threads_);
      return multiply(arguments, static_cast<double*>(arguments.d), problem_.d.layout.stride[0],
                      form_.alpha.value(arguments.scalars), beta);
    }
    multiply(arguments, reinterpret_cast<double*>(workspace), problem_.m() * problem_.n(), 1, 0);
    tail_->run({workspace, arguments.c, arguments.operands, arguments.scalars, arguments.d, arguments.stores},
               workspace + accumulator_bytes());
  }

 private:
  std::size_t accumulator_bytes() const { return round_up(static_cast<std::size_t>(accumulator_.bytes())); }

  // Slices along the batch, or the rows or columns of d, whichever are more.
  void multiply(GemmProblem::Arguments const& arguments, double* d, Index d_batch, double alpha,
                double beta) const {
    constexpr Index grain = 16;
    Index const batch = problem_.batch(), m = problem_.m(), n = problem_.n();
    bool const small = m * n * problem_.k() < 32 * 32 * 32;
    int const parts = small && batch < threads_ ? 1 : threads_;
    bool const by_batch = batch >= 2 * threads_;
    parallel_parts(parts, [&](int part, int count) {
      Range matrices{0, batch}, rows{0, m}, columns{0, n};
      if (by_batch)
        matrices = share(batch, part, count);
      else if (m >= n)
        rows = share(m, part, count, grain);
      else
        columns = share(n, part, count, grain);
      for (Index i = matrices.first; i < matrices.last; ++i)
        multiply_slice(static_cast<double const*>(arguments.a) + i * problem_.a.layout.stride[0],
                       static_cast<double const*>(arguments.b) + i * problem_.b.layout.stride[0],
                       d + i * d_batch, rows, columns, alpha, beta);
    });
  }

  void multiply_slice(double const* a, double const* b, double* d, Range rows, Range columns, double alpha,
                      double beta) const {
    Index const m = rows.last - rows.first, n = columns.last - columns.first;
    a += rows.first * (a_.letter == 'N' ? a_.leading : 1);
    b += columns.first * (b_.letter == 'N' ? 1 : b_.leading);
    if (d_.letter == 'N')
      openblas_dgemm(a_.letter == 'T', b_.letter == 'T', m, n, problem_.k(), alpha, a, a_.leading, b,
                     b_.leading, beta, d + rows.first * d_.leading + columns.first, d_.leading);
    else
      openblas_dgemm(b_.letter == 'N', a_.letter == 'N', n, m, problem_.k(), alpha, b, b_.leading, a,
                     a_.leading, beta, d + columns.first * d_.leading + rows.first, d_.leading);
  }

  GemmProblem problem_;
  int threads_;
  BlasForm form_;
  bool in_blas_;
  BlasOperand a_, b_, d_;
  TensorDescription accumulator_;
  std::optional<Pointwise> tail_;
};

}  // namespace

Candidate<GemmProblem> openblas_candidate() {
  return {"openblas",
          {{violates_openblas}},
          [](GemmProblem const& problem, Device const& device) {
            return OpenblasKernel(problem, device).workspace_bytes();
          },
          [](Plan<GemmProblem> const& plan) -> std::unique_ptr<Kernel<GemmProblem>> {
            return std::make_unique<OpenblasKernel>(plan.problem, plan.device);
          }};
}

}  // namespace cosmati::cpu
