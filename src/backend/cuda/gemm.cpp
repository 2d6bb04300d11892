// Prepares a plan's kernel, from the cache or the compiler, and launches it.
#include "src/backend/cuda/gemm.h"

#include <algorithm>

#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/epilogue_arguments.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/warp_specialized_gemm.h"
#include "src/jit/cache.h"
#include "src/plan/gemm/launch.h"
#include "src/plan/gemm/model.h"
#include "src/program/launch_tag.h"

namespace cosmati::cuda {
namespace {

class ComposedGemm final : public Kernel<GemmProblem> {
 public:
  ComposedGemm(Plan<GemmProblem> const& plan, Function function)
      : recipe_(plan.recipe),
        form_(plan::canonical(plan.problem, plan.recipe.swapped)),
        grid_(plan::grid_of(plan.recipe, form_)),
        scalars_(plan.problem.epilogue.expression.scalars().size()),
        ordinal_(plan.device.gpu.ordinal),
        shared_bytes_(plan::shared_storage_bytes(plan.recipe, form_)),
        function_(std::move(function)) {
    function_.allow_shared_bytes(shared_bytes_);
  }

  void enqueue(GemmProblem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    if (form_.m == 0 || form_.n == 0 || form_.batch == 0) return;
    Current const current(ordinal_);  // set once for all driver calls below
    plan::with_epilogue_arguments(form_, scalars_, [&]<class Epilogue>(Epilogue epilogue) {
      fill_epilogue(epilogue, form_, scalars_, arguments);
      enqueue(epilogue, arguments, workspace, stream);
    });
  }

 private:
  template <class Epilogue>
  void enqueue(Epilogue const& epilogue, GemmProblem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const {
    MatrixGemmParameters<Epilogue> parameters;
    plan::fill_product(parameters, form_, recipe_, arguments.a, arguments.b, workspace);
    parameters.d = plan::matrix_arguments(form_.d, arguments.d, form_.by_pointers);
    parameters.epilogue = epilogue;
    for (Index first = 0; first < form_.batch; first += grid_.most_batch) {
      parameters.schedule.first_batch = first;
      parameters.schedule.batch = std::min<Index>(grid_.most_batch, form_.batch - first);
      parameters.schedule.tag = fresh_launch_tag();
      function_.launch({grid_.tiles, grid_.splits, grid_.z(parameters.schedule.batch)},
                       static_cast<unsigned>(recipe_.policy.threads()), static_cast<unsigned>(shared_bytes_),
                       parameters, stream);
    }
  }

  GemmRecipe recipe_;
  plan::CanonicalGemm form_;
  plan::GemmGrid grid_;
  std::size_t scalars_;  // number of scalars in the expression
  int ordinal_;
  int shared_bytes_;
  Function function_;
};

}  // namespace

std::unique_ptr<Kernel<GemmProblem>> prepare_gemm(Plan<GemmProblem> const& plan) {
  jit::Cubin const cubin = jit::kernel_cache().get(gemm_source(plan));
  Module const module(plan.device.gpu.ordinal, cubin.image.data());
  if (plan.recipe.policy.main_loop == MainLoop::warp_specialized)
    return warp_specialized_gemm(plan, module.function(cubin.lowered_name));
  return std::make_unique<ComposedGemm>(plan, module.function(cubin.lowered_name));
}

}  // namespace cosmati::cuda
