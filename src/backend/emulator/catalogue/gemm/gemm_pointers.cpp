// The emulated launches of a batch by pointers: one that creates the tensor maps, and the product.
#include "src/backend/emulator/catalogue/gemm/gemm_pointers.h"

#include <algorithm>
#include <cstdint>

#include "cosmati/epilogue/parse.h"
#include "cosmati/gemm/bind.h"
#include "cosmati/gemm/warp_specialized.h"
#include "src/backend/emulator/catalogue/gemm/gemm_host.h"
#include "src/backend/emulator/catalogue/operand_map.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/program/launch_tag.h"

namespace cosmati::emulator {
namespace {

constexpr Along depth = Along::depth;
constexpr GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, 2);

// K-major bf16 operands.
using Source = TensorSource<bf16, depth, TensorMapArray>;
using Traits = WarpSpecializedTraits<policy, Source, Source, f32, HostEpilogue, HostDestination>;

class EmulatedPointersGemm final : public Kernel<GemmProblem> {
 public:
  explicit EmulatedPointersGemm(Plan<GemmProblem> const& plan)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        form_(plan::canonical(plan.problem, plan.recipe.swapped)),
        threads_(plan.device.threads) {
    constexpr int size = 2;
    void const* const any_address = reinterpret_cast<void const*>(std::uintptr_t{1} << 20);  // placeholder
    models_.count = form_.batch;
    if (form_.m == 0 || form_.n == 0 || form_.k == 0) return;
    models_.model[0] = operand_map(form_.a, any_address, form_.m, form_.k, 1, depth,
                                   tensor_box(depth, size, policy.block_k, policy.block_m, 1));
    models_.model[1] = operand_map(form_.b, any_address, form_.n, form_.k, 1, depth,
                                   tensor_box(depth, size, policy.block_k, policy.block_n, 1));
  }

  void enqueue(GemmProblem::Arguments const& arguments, std::byte* workspace, Stream) const override {
    if (form_.m == 0 || form_.n == 0 || form_.batch == 0) return;
    reference::ElementEpilogue const expression(problem_.epilogue, epilogue::gemm_indices, arguments.operands,
                                                arguments.scalars, arguments.stores);
    Traits::Params parameters;
    parameters.m = form_.m;
    parameters.n = form_.n;
    parameters.k = form_.k;
    fill_result(parameters, problem_, form_, expression, arguments);
    make_maps(parameters, arguments, workspace + recipe_.map_offset);
    ScheduleArguments& schedule = parameters.schedule;
    schedule = plan::schedule_of(recipe_, workspace);
    schedule.tag = fresh_launch_tag();
    schedule.batch = form_.batch;
    Index const tiles = plan::tiles_of(recipe_.policy, form_) * recipe_.splits * form_.batch;
    launch_kernel_clusters<&warp_specialized_kernel<Traits>>(
        {static_cast<int>(std::min(tiles, Index{emulated_places}))}, {Traits::cluster}, Traits::threads,
        sizeof(Traits::SharedStorage), parameters, threads_);
  }

 private:
  void make_maps(Traits::Params& parameters, GemmProblem::Arguments const& arguments,
                 std::byte* workspace) const {
    MapParameters maps = models_;
    void const* const arrays[] = {form_.swapped ? arguments.b : arguments.a,
                                  form_.swapped ? arguments.a : arguments.b};
    // Maps need twice the alignment of a workspace. The space reserved for the maps of D, which is unused
    // here, leaves room.
    constexpr std::uintptr_t unit = alignof(arch::TensorMapOfDevice);
    workspace += (unit - reinterpret_cast<std::uintptr_t>(workspace) % unit) % unit;
    for (int i = 0; i < 2; ++i) {
      maps.pointers[i] = static_cast<void* const*>(const_cast<void*>(arrays[i]));
      maps.maps[i] = reinterpret_cast<arch::TensorMapOfDevice*>(workspace) + i * form_.batch;
    }
    parameters.a.maps = maps.maps[0];
    parameters.b.maps = maps.maps[1];
    auto const blocks = static_cast<int>((form_.batch + bind_threads - 1) / bind_threads);
    launch_kernel<&bind_maps_kernel<bind_threads>>({blocks, 2}, bind_threads, 0, maps, threads_);
  }

  GemmProblem problem_;
  GemmRecipe recipe_;
  plan::CanonicalGemm form_;
  int threads_;
  MapParameters models_;
};

}  // namespace

std::unique_ptr<Kernel<GemmProblem>> prepare_pointers(Plan<GemmProblem> const& plan) {
  return std::make_unique<EmulatedPointersGemm>(plan);
}

}  // namespace cosmati::emulator
