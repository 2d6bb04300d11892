// The instructions, operand order and policies of batch-invariant products.
#include "src/plan/gemm/invariant.h"

#include <fmt/format.h>

#include "src/ops/architecture.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

constexpr int invariant_columns = 128;  // the only wgmma shape used, m64n128

}  // namespace

Multiply simple_multiply(CanonicalGemm const& form) {
  if (form.sum == DataType::f16) return Multiply::half2;
  return is_int8(form.a.type) && is_int8(form.b.type) ? Multiply::dp4a : Multiply::fma;
}

Multiply invariant_multiply(CanonicalGemm const& form, Gpu const& gpu, std::string const& kernel) {
  auto const may = [&](MainLoop main_loop) { return kernel.empty() || kernel == name_of(main_loop); };
  if (may(MainLoop::warp_specialized) && features_of(gpu).wgmma &&
      wgmma_takes(form.a.type, form.b.type, form.sum))
    return Multiply::wgmma;
  if (may(MainLoop::multistage) && mma_takes(form.a.type, form.b.type, form.sum) &&
      mma_device_violation(form.a.type, gpu).empty())
    return Multiply::mma;
  bool const early = form.a.type == DataType::f16;
  if (may(MainLoop::double_buffered) && !features_of(gpu).mma && features_of(gpu).wmma && early &&
      wmma_takes(form.a.type, form.b.type, form.sum))
    return Multiply::wmma;
  return simple_multiply(form);
}

std::string invariant_violation(MainLoop main_loop, CanonicalGemm const& form, Gpu const& gpu,
                                std::string const& kernel) {
  if (main_loop == MainLoop::gemv || main_loop == MainLoop::tiny)
    return fmt::format(
        "batch-invariant plans add the products of k in the same order for every m; {} is for "
        "few rows only",
        name_of(main_loop));
  Multiply const only = invariant_multiply(form, gpu, kernel);
  bool const by_matrices = only == Multiply::wgmma || only == Multiply::mma || only == Multiply::wmma;
  bool const has = main_loop == MainLoop::warp_specialized ? only == Multiply::wgmma
                   : main_loop == MainLoop::multistage     ? only == Multiply::mma || !by_matrices
                                                           : only == Multiply::wmma || !by_matrices;
  if (has) return {};
  return fmt::format("does not use multiply {}, which batch-invariant plans use for {} and {} for every m",
                     name_of(only), name_of(form.swapped ? form.b.type : form.a.type),
                     name_of(form.swapped ? form.a.type : form.b.type));
}

std::optional<bool> invariant_side(GemmProblem const& problem, PlanOptions const& options) {
  if (!options.batch_invariant) return {};
  Index const* const stride = problem.d.layout.stride;
  return problem.n() > 1 && stride[1] == 1 && (stride[2] != 1 || problem.m() == 1);
}

std::string keep_invariant(std::vector<NamedPolicy>& policies, std::optional<Partition> asked) {
  if (asked && asked != Partition::tiles)
    return fmt::format(
        "partition={} sums parts of k separately; a batch-invariant plan accumulates k in order",
        name_of(*asked));
  std::erase_if(policies, [](NamedPolicy const& named) { return named.policy.cluster_k > 1; });
  if (policies.empty())
    return "cluster_k above 1 sums parts of k in different blocks; a batch-invariant plan accumulates k in "
           "order";
  if (policies.size() > 1)
    std::erase_if(policies, [](NamedPolicy const& named) {
      return named.policy.multiply == Multiply::wgmma && named.policy.warp_n != invariant_columns;
    });
  return {};
}

}  // namespace cosmati::plan
