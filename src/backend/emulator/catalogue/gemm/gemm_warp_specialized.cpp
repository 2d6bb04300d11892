// The emulated launch of a plan with persistent clusters: repacking of the operands, tensor maps, blocks.
#include "src/backend/emulator/catalogue/gemm/gemm_warp_specialized.h"

#include <algorithm>

#include "cosmati/epilogue/parse.h"
#include "cosmati/tile/tensor_box.h"
#include "src/backend/emulator/catalogue/gemm/gemm_repack.h"
#include "src/backend/emulator/catalogue/operand_map.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/repack.h"
#include "src/program/launch_tag.h"

namespace cosmati::emulator {
namespace {

class EmulatedWarpSpecializedGemm final : public Kernel<GemmProblem> {
 public:
  explicit EmulatedWarpSpecializedGemm(Plan<GemmProblem> const& plan)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        form_(plan::canonical(plan.problem, plan.recipe.swapped)),
        threads_(plan.device.threads) {}

  void enqueue(GemmProblem::Arguments const& arguments, std::byte* workspace, Stream) const override {
    if (form_.m == 0 || form_.n == 0 || form_.batch == 0) return;
    reference::ElementEpilogue const expression(problem_.epilogue, epilogue::gemm_indices, arguments.operands,
                                                arguments.scalars, arguments.stores);
    plan::CanonicalGemm const after = plan::repacked(form_, recipe_);  // after repacking
    void const *a = nullptr, *b = nullptr;
    if (form_.k > 0) {  // otherwise nothing is loaded
      a = repack(form_.a, recipe_.repack_a, form_.m, form_.k, form_.batch,
                 form_.swapped ? arguments.b : arguments.a, workspace, threads_);
      b = repack(form_.b, recipe_.repack_b, form_.n, form_.k, form_.batch,
                 form_.swapped ? arguments.a : arguments.b, workspace, threads_);
    }
    if (recipe_.a.by_threads || recipe_.b.by_threads) {
      HostGemmParameters parameters;
      fill_result(parameters, problem_, form_, expression, arguments);
      parameters.a = plan::matrix_arguments(after.a, a);
      parameters.b = plan::matrix_arguments(after.b, b);
      launch(parameters, find_wgmma_by_threads(form_.a.type, recipe_.a, recipe_.b), workspace);
      return;
    }
    WarpgroupGemmParameters parameters;
    fill_result(parameters, problem_, form_, expression, arguments);
    GemmPolicy const& p = recipe_.policy;
    int const size = size_of(form_.a.type);
    if (form_.k > 0) {
      parameters.a.map = operand_map(after.a, a, form_.m, form_.k, form_.batch, recipe_.a.along,
                                     tensor_box(recipe_.a.along, size, p.block_k, p.block_m, p.cluster_n));
      parameters.b.map = operand_map(after.b, b, form_.n, form_.k, form_.batch, recipe_.b.along,
                                     tensor_box(recipe_.b.along, size, p.block_k, p.block_n, p.cluster_m));
    }
    launch(parameters,
           recipe_.policy.partition == Partition::stream_k
               ? find_wgmma_stream_k(recipe_.a.along, recipe_.b.along)
               : find_wgmma(form_.a.type, form_.b.type, recipe_.a.along, recipe_.b.along),
           workspace);
  }

 private:
  template <class Parameters, class Entry>
  void launch(Parameters& parameters, Entry const& entry, std::byte* workspace) const {
    parameters.m = form_.m;
    parameters.n = form_.n;
    parameters.k = form_.k;
    ScheduleArguments& schedule = parameters.schedule;
    schedule = plan::schedule_of(recipe_, workspace);
    Index const tiles = plan::tiles_of(recipe_.policy, form_) * recipe_.splits;
    Index const most_batch = std::max<Index>(1, 0x7fffffff / tiles);
    for (Index first = 0; first < form_.batch; first += most_batch) {
      schedule.tag = fresh_launch_tag();
      schedule.first_batch = first;
      schedule.batch = std::min(most_batch, form_.batch - first);
      Index const blocks =
          schedule.blocks > 0 ? schedule.blocks : std::min(tiles * schedule.batch, Index{emulated_places});
      entry.launch(static_cast<int>(blocks), parameters, threads_);
    }
  }

  GemmProblem problem_;
  GemmRecipe recipe_;
  plan::CanonicalGemm form_;  // before repacking
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel<GemmProblem>> prepare_warp_specialized(Plan<GemmProblem> const& plan) {
  return std::make_unique<EmulatedWarpSpecializedGemm>(plan);
}

}  // namespace cosmati::emulator
