// The emulator's matrix products by wgmma.
#include "src/backend/emulator/catalogue/gemm/gemm_wgmma.h"
#include "cosmati/gemm/f64/double_product.h"
#include "cosmati/gemm/sum_of_parts.h"
#include "src/plan/gemm/sum_of_parts.h"

namespace cosmati::emulator {
namespace {

constexpr Along outer = Along::mn, depth = Along::k;

template <class A, class B, class Sum, Partition partition = Partition::split_k, Sums sums = Sums::usual>
void add(KernelTable& table) {
  using Kernel = WgmmaKernel<A, B, Sum, partition, sums>;
  using Traits = typename Kernel::Traits;
  add_clusters<&warp_specialized_kernel<Traits>, Traits, typename Traits::Params>(table, Kernel::spec());
}

// 16-bit operands and those of f64 may be MN-major or K-major.
template <class Element, Partition partition = Partition::split_k, class Sum = f32>
void add_any(KernelTable& table) {
  using Outer = TensorSource<Element, outer>;
  using Deep = TensorSource<Element, depth>;
  add<Outer, Outer, Sum, partition>(table), add<Outer, Deep, Sum, partition>(table);
  add<Deep, Outer, Sum, partition>(table), add<Deep, Deep, Sum, partition>(table);
}
template <class ElementA, class ElementB, class Sum>
void add_deep(KernelTable& table) {
  add<TensorSource<ElementA, depth>, TensorSource<ElementB, depth>, Sum>(table);
}
template <class ElementA, class ElementB>
void add_float8(KernelTable& table) {
  using A = TensorSource<ElementA, depth>;
  using B = TensorSource<ElementB, depth>;
  add<A, B, f32>(table), add<A, B, f32, Partition::split_k, Sums::fast>(table);
}
// Products whose operands are both loaded by threads.
template <class Element, Along a, int width>
void add_by_threads(KernelTable& table) {
  add<StridedSource<Element, a, width>, StridedSource<Element, depth, width>, f32>(table);
}

template <int groups>
void add_sum_of_parts(KernelTable& table) {
  constexpr SumOfPartsBlock block{.groups = groups};
  using Traits = SumOfPartsTraits<block, f32, HostEpilogue, HostDestination>;
  add_kernel<&sum_of_parts_kernel<Traits>, typename Traits::Params>(
      table, "sum_of_parts_kernel",
      plan::SumOfPartsTraits{block, DataType::f32, "HostEpilogue", "HostDestination"}.print());
}

}  // namespace

void add_gemm_wgmma(KernelTable& table) {
  add_any<f16>(table), add_any<bf16>(table), add_any<bf16, Partition::stream_k>(table);
  add_any<f16, Partition::split_k, f16>(table), add_any<bf16, Partition::split_k_parallel>(table);
  add_sum_of_parts<1>(table), add_sum_of_parts<2>(table), add_sum_of_parts<4>(table);
  add_sum_of_parts<8>(table);
  add_deep<s8, s8, s32>(table), add_deep<s8, u8, s32>(table);
  add_deep<u8, s8, s32>(table), add_deep<u8, u8, s32>(table);
  add_float8<e4m3, e4m3>(table), add_float8<e4m3, e5m2>(table);
  add_float8<e5m2, e4m3>(table), add_float8<e5m2, e5m2>(table);
  add_deep<tf32, tf32, f32>(table), add<TensorSource<tf32, outer>, TensorSource<tf32, depth>, f32>(table);
  add_any<f64, Partition::split_k, f64>(table), add_any<f64, Partition::stream_k, f64>(table);
  add_by_threads<tf32, depth, 1>(table), add_by_threads<tf32, outer, 1>(table);
  add<StridedSource<tf32, outer, 1>, TransposedSource<tf32>, f32>(table);
  add<StridedSource<tf32, depth, 1>, TransposedSource<tf32>, f32>(table);
  add_by_threads<bf16, depth, 1>(table), add_by_threads<bf16, depth, 2>(table);
  using Pieces = TensorSource<bf16, depth>;
  add<Pieces, Pieces, f32, Partition::split_k, Sums::promoted>(table);
  add<Pieces, Pieces, f32, Partition::stream_k, Sums::promoted>(table);
  add<Pieces, Pieces, f32, Partition::split_k_parallel, Sums::promoted>(table);
  using ByPointers = TensorSource<bf16, depth, AddressedTensors>;
  add<ByPointers, ByPointers, f32>(table);
}

}  // namespace cosmati::emulator
