// The emulator's grouped products.
#include "src/backend/emulator/catalogue/gemm/gemm_group.h"

#include "cosmati/gemm/group.h"
#include "cosmati/gemm/warp_specialized.h"
#include "src/plan/emulated/contents.h"

namespace cosmati::emulator {
namespace {

constexpr Along outer = Along::outer, depth = Along::depth;

template <MainLoop main_loop, Multiply multiply, class Element, int width>
void launch_tiles(int blocks, GroupArguments const& group, int host_threads) {
  constexpr GemmPolicy policy = emulated_policy(main_loop, multiply, static_cast<int>(sizeof(Element)));
  using Traits = GemmTraits<policy, StridedSource<Element, depth, width>,
                            StridedSource<Element, depth, width>, f32, HostEpilogue, HostDestination>;
  launch_kernel<&grouped_gemm_kernel<Traits>>({blocks}, Traits::threads,
                                              sizeof(typename Traits::SharedStorage), group, host_threads);
}

template <Along along_a>
void launch_wgmma(int blocks, GroupArguments const& group, int host_threads) {
  constexpr GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, 2);
  using Traits = WarpSpecializedTraits<policy, TensorSource<bf16, along_a, TensorMapOfProblem>,
                                       TensorSource<bf16, depth, TensorMapOfProblem>, f32, HostEpilogue,
                                       HostDestination>;
  launch_kernel_clusters<&warp_specialized_kernel<Traits, WalkOfGroup<Traits>>>(
      {blocks}, {Traits::cluster}, Traits::threads, sizeof(typename Traits::SharedStorage), group,
      host_threads);
}

}  // namespace

GroupEntry find_group(GemmRecipe const& recipe, DataType a, DataType b) {
  if (!has_group(recipe, a, b)) return {};
  GemmPolicy const& p = recipe.policy;
  auto const deep = [](OperandAccess const& access) { return access.along == depth; };
  int const full = 16 / size_of(a);
  bool const wide = deep(recipe.a) && deep(recipe.b) && recipe.a.width >= full && recipe.b.width >= full;
  if (a == DataType::f32)
    return {wide ? &launch_tiles<MainLoop::double_buffered, Multiply::fma, f32, 4>
                 : &launch_tiles<MainLoop::double_buffered, Multiply::fma, f32, 1>};
  if (p.multiply == Multiply::mma)
    return {wide ? &launch_tiles<MainLoop::multistage, Multiply::mma, bf16, 8>
                 : &launch_tiles<MainLoop::multistage, Multiply::mma, bf16, 1>};
  return {deep(recipe.a) ? &launch_wgmma<depth> : &launch_wgmma<outer>};
}

}  // namespace cosmati::emulator
