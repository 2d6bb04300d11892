// The emulator's matrix products by wgmma.
#include <algorithm>

#include "cosmati/gemm/warp_specialized.h"
#include "src/backend/emulator/catalogue/gemm/gemm_warp_specialized.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/emulated/policy.h"

namespace cosmati::emulator {
namespace {

constexpr Along outer = Along::outer, depth = Along::depth;

template <class ElementA, class ElementB, class Sum, Along a, Along b,
          Partition partition = Partition::split_k>
void launch_wgmma(int blocks, WarpgroupGemmParameters const& parameters, int host_threads) {
  constexpr GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, Multiply::wgmma,
                                                static_cast<int>(sizeof(ElementA)), partition);
  using Traits = WarpSpecializedTraits<policy, TensorSource<ElementA, a>, TensorSource<ElementB, b>, Sum,
                                       HostEpilogue, HostDestination>;
  launch_kernel_clusters<&warp_specialized_kernel<Traits>>({blocks}, {Traits::cluster}, Traits::threads,
                                                           sizeof(typename Traits::SharedStorage), parameters,
                                                           host_threads);
}

// 16-bit operands may be MN-major or K-major.
template <class Element, Partition partition = Partition::split_k>
WarpgroupEntry find_any(Along a, Along b) {
  if (a == outer)
    return b == outer ? WarpgroupEntry{&launch_wgmma<Element, Element, f32, outer, outer, partition>}
                      : WarpgroupEntry{&launch_wgmma<Element, Element, f32, outer, depth, partition>};
  return b == outer ? WarpgroupEntry{&launch_wgmma<Element, Element, f32, depth, outer, partition>}
                    : WarpgroupEntry{&launch_wgmma<Element, Element, f32, depth, depth, partition>};
}
template <class ElementA, class ElementB, class Sum>
WarpgroupEntry find_deep() {
  return {&launch_wgmma<ElementA, ElementB, Sum, depth, depth>};
}

template <class Element, Along a, Along b, int width>
void launch_by_threads(int blocks, HostGemmParameters const& parameters, int host_threads) {
  constexpr GemmPolicy policy =
      emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, static_cast<int>(sizeof(Element)));
  using Traits = WarpSpecializedTraits<policy, StridedSource<Element, a, width>,
                                       StridedSource<Element, b, width>, f32, HostEpilogue, HostDestination>;
  launch_kernel_clusters<&warp_specialized_kernel<Traits>>({blocks}, {Traits::cluster}, Traits::threads,
                                                           sizeof(typename Traits::SharedStorage), parameters,
                                                           host_threads);
}

}  // namespace

ByThreadsEntry find_wgmma_by_threads(DataType type, OperandAccess const& a, OperandAccess const& b) {
  if (!has_wgmma_by_threads(type, a, b)) return {};
  bool const deep = a.along == depth, pairs = std::min(a.width, b.width) >= 2;
  if (type == DataType::tf32)
    return {deep ? &launch_by_threads<tf32, depth, depth, 1> : &launch_by_threads<tf32, outer, depth, 1>};
  return {pairs ? &launch_by_threads<bf16, depth, depth, 2> : &launch_by_threads<bf16, depth, depth, 1>};
}

WarpgroupEntry find_wgmma(DataType a, DataType b, Along along_a, Along along_b) {
  switch (a) {
    case DataType::f16: return find_any<f16>(along_a, along_b);
    case DataType::bf16: return find_any<bf16>(along_a, along_b);
    case DataType::s8: return b == DataType::s8 ? find_deep<s8, s8, s32>() : find_deep<s8, u8, s32>();
    case DataType::u8: return b == DataType::s8 ? find_deep<u8, s8, s32>() : find_deep<u8, u8, s32>();
    case DataType::e4m3:
      return b == DataType::e4m3 ? find_deep<e4m3, e4m3, f32>() : find_deep<e4m3, e5m2, f32>();
    case DataType::e5m2:
      return b == DataType::e4m3 ? find_deep<e5m2, e4m3, f32>() : find_deep<e5m2, e5m2, f32>();
    default:
      return along_a == outer ? WarpgroupEntry{&launch_wgmma<tf32, tf32, f32, outer, depth>}
                              : find_deep<tf32, tf32, f32>();
  }
}

WarpgroupEntry find_wgmma_stream_k(Along along_a, Along along_b) {
  return find_any<bf16, Partition::stream_k>(along_a, along_b);
}

}  // namespace cosmati::emulator
