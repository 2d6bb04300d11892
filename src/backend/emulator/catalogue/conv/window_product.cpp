// The emulator's convolutions with im2col by TMA.
#include "cosmati/conv/merged_phases.h"
#include "cosmati/conv/phase_scheduler.h"
#include "cosmati/conv/tma_im2col.h"
#include "cosmati/gemm/warp_specialized.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/plan/conv/windows/window_program.h"

namespace cosmati::emulator {
namespace {

constexpr GemmPolicy policy_of(int element_bytes, int row_bytes, bool filter_gradient) {
  GemmPolicy policy = emulated_window_policy(element_bytes, filter_gradient);
  policy.block_k = row_bytes / element_bytes;
  return policy;
}

template <class A, class B, class Sum, int row_bytes = 128, bool filter_gradient = false>
using Traits = WarpSpecializedTraits<policy_of(static_cast<int>(sizeof(typename A::Element)), row_bytes,
                                               filter_gradient),
                                     A, B, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;

template <auto kernel, class Traits, class Parameters>
void add(KernelTable& table, program::KernelSpec const& spec) {
  table[spec.key()] = [](Grid grid, int threads, unsigned, void const* parameters, int host_threads) {
    launch_kernel_clusters<kernel>(grid, {Traits::cluster}, threads, sizeof(typename Traits::SharedStorage),
                                   *static_cast<Parameters const*>(parameters), host_threads);
  };
}

// One product is one phase.
template <class Element, Along along, class Sum, int row_bytes = 128>
void add_phases(KernelTable& table, DataType type) {
  using Own = Traits<ImageSource<Element>, FilterSource<Element, along>, Sum, row_bytes>;
  using Scheduler = PhaseScheduler<Own, max_phases_of_launch>;
  add<&warp_specialized_kernel<Own, Scheduler>, Own, typename Scheduler::Launch>(
      table, plan::emulated_window_kernel(type, {.along_of_b = along, .row_bytes = row_bytes}));
}

template <class Element, Along along>
void add_merged_phases(KernelTable& table, DataType type) {
  constexpr GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, Multiply::wgmma,
                                                static_cast<int>(sizeof(Element)), Partition::tiles);
  using Own = MergedPhasesTraits<policy, ImageSource<Element>, FilterSource<Element, along>, f32,
                                 ConvolutionHostEpilogue, ConvolutionHostDestination>;
  using Scheduler = MergedPhases<Own>;
  add<&warp_specialized_kernel<Own, Scheduler>, Own, typename Scheduler::Launch>(
      table, plan::emulated_merged_kernel(type, along));
}

template <class A, class B>
void add_filter_gradient(KernelTable& table, DataType type) {
  using Own = Traits<A, B, f32, 128, true>;
  constexpr bool image_is_a = is_same<A, ImageSource<typename A::Element, Along::mn>>;
  add<&warp_specialized_kernel<Own>, Own, typename Own::Params>(
      table, plan::emulated_window_kernel(type, {.image_is_a = image_is_a,
                                                 .filter_gradient = true,
                                                 .along_of_a = A::along,
                                                 .along_of_b = B::along}));
}

}  // namespace

void add_window_products(KernelTable& table) {
  add_phases<f16, Along::k, f32>(table, DataType::f16);
  add_phases<f16, Along::mn, f32>(table, DataType::f16);
  add_phases<f16, Along::k, f32, 64>(table, DataType::f16);  // few channels
  add_phases<f16, Along::mn, f32, 64>(table, DataType::f16);
  add_phases<tf32, Along::k, f32>(table, DataType::tf32);
  add_phases<s8, Along::k, s32>(table, DataType::s8);
  add_merged_phases<f16, Along::k>(table, DataType::f16);
  add_merged_phases<f16, Along::mn>(table, DataType::f16);
  add_merged_phases<tf32, Along::k>(table, DataType::tf32);
  add_filter_gradient<TensorSource<f16, Along::mn>, ImageSource<f16, Along::mn>>(table, DataType::f16);
  add_filter_gradient<ImageSource<tf32, Along::mn>, TensorSource<tf32, Along::k>>(table, DataType::tf32);
}

}  // namespace cosmati::emulator
