// The emulator's grouped products, and the kernels that bind pointers.
#include "cosmati/gemm/bind.h"
#include "cosmati/gemm/group.h"
#include "src/backend/emulator/catalogue/gemm/gemm_wgmma.h"

namespace cosmati::emulator {
namespace {

constexpr Along along_mn = Along::mn, along_k = Along::k;

template <MainLoop main_loop, Multiply multiply, class Element, int width>
void add_tiles(KernelTable& table) {
  constexpr GemmPolicy policy = emulated_policy(main_loop, multiply, static_cast<int>(sizeof(Element)));
  using Source = StridedSource<Element, along_k, width>;
  using Traits = GemmTraits<policy, Source, Source, f32, HostEpilogue, HostDestination>;
  add_tiled<&grouped_gemm_kernel<Traits>, Traits, GroupArguments>(
      table, {.entry = "grouped_gemm_kernel", .traits = printed_traits<policy, Source, Source, f32>()});
}

template <Along along_a>
void add_wgmma(KernelTable& table) {
  using Kernel = WgmmaKernel<TensorSource<bf16, along_a, TensorMapOfProblem>,
                             TensorSource<bf16, along_k, TensorMapOfProblem>, f32>;
  using Traits = typename Kernel::Traits;
  add_clusters<&warp_specialized_kernel<Traits, GroupScheduler<Traits>>, Traits, GroupArguments>(
      table, Kernel::spec("GroupScheduler"));
}

}  // namespace

void add_gemm_group(KernelTable& table) {
  add_tiles<MainLoop::double_buffered, Multiply::fma, f32, 4>(table);
  add_tiles<MainLoop::double_buffered, Multiply::fma, f32, 1>(table);
  add_tiles<MainLoop::multistage, Multiply::mma, bf16, 8>(table);
  add_tiles<MainLoop::multistage, Multiply::mma, bf16, 1>(table);
  add_wgmma<along_k>(table), add_wgmma<along_mn>(table);
  add_kernel<&bind_kernel<true>, BindParameters>(table, "bind_kernel", "true");
  add_kernel<&bind_kernel<false>, BindParameters>(table, "bind_kernel", "false");
}

}  // namespace cosmati::emulator
