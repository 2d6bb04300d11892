// alpha * a * b + beta * c in f32, with scalars that are known only at run time, by oneDNN's BLAS-like
// function.
#include <fmt/format.h>

#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/gemm/blas_form.h"
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"

namespace cosmati::cpu::onednn {
namespace {

// Without run-time scalars, the matmul primitive does the same with scratch memory from the workspace. It is
// as fast or faster for small products, but takes 1.03 to 1.14 times as long for large ones (decision 31).
std::string violates_need(GemmProblem const& problem, Device const&) {
  auto const& expression = problem.epilogue.expression;
  if (expression.uses_source() || !expression.scalars().empty()) return {};
  if (problem.m() >= 256 && problem.n() >= 256 && problem.k() >= 256) return {};
  return fmt::format(
      "the epilogue {} has neither c nor scalars, and m, n, k are {}, {}, {}; below 256, 256, 256 "
      "onednn_matmul is as fast or faster",
      expression.text(), problem.m(), problem.n(), problem.k());
}

class SgemmKernel final : public HostKernel<GemmProblem> {
 public:
  explicit SgemmKernel(Plan<GemmProblem> const& plan)
      : problem_(plan.problem), threads_(plan.device.threads) {
    read_blas_form(problem_.epilogue.expression, form_);
    read_blas_operand(problem_.a, a_);
    read_blas_operand(problem_.b, b_);
    read_blas_operand(problem_.d, d_);
  }

  void run(GemmProblem::Arguments const& arguments, std::byte*) const override {
    float const alpha = static_cast<float>(form_.alpha.value(arguments.scalars));
    double const exact_beta = problem_.c.present() ? form_.beta.value(arguments.scalars) : 0;
    float const beta = static_cast<float>(exact_beta);
    if (beta != 0 && arguments.c != arguments.d)
      convert_elements(problem_.c, arguments.c, problem_.d, arguments.d, threads_);
    bool const many = problem_.batch() >= 4 * threads_;
    ThreadCount const all(threads_);
    require_code_memory();  // the first product of a kind generates the kernel
    ThreadCount const count(many ? 1 : threads_);
    parallel_parts(many ? threads_ : 1, [&](int part, int parts) {
      auto const [first, last] = share(problem_.batch(), part, parts);
      for (Index i = first; i < last; ++i) multiply(arguments, i, alpha, beta);
    });
  }

 private:
  void multiply(GemmProblem::Arguments const& arguments, Index i, float alpha, float beta) const {
    auto const* const a = static_cast<float const*>(arguments.a) + i * problem_.a.layout.stride[0];
    auto const* const b = static_cast<float const*>(arguments.b) + i * problem_.b.layout.stride[0];
    auto* const d = static_cast<float*>(arguments.d) + i * problem_.d.layout.stride[0];
    if (d_.letter == 'N')
      dnnl_sgemm(a_.letter, b_.letter, problem_.m(), problem_.n(), problem_.k(), alpha, a, a_.leading, b,
                 b_.leading, beta, d, d_.leading);
    else
      dnnl_sgemm(flipped(b_.letter), flipped(a_.letter), problem_.n(), problem_.m(), problem_.k(), alpha, b,
                 b_.leading, a, a_.leading, beta, d, d_.leading);
  }

  GemmProblem problem_;
  int threads_;
  BlasForm form_;
  BlasOperand a_, b_, d_;
};

}  // namespace

Candidate<GemmProblem> sgemm_candidate() {
  return {"onednn_sgemm",
          {{violates_size<GemmProblem>},
           {violates_f32<GemmProblem>},
           {violates_blas_form},
           {violates_blas_strides},
           {violates_need, true}},
          nullptr,
          [](Plan<GemmProblem> const& plan) -> std::unique_ptr<Kernel<GemmProblem>> {
            return std::make_unique<SgemmKernel>(plan);
          }};
}

}  // namespace cosmati::cpu::onednn
