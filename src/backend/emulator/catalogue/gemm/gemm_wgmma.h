// Adds wgmma kernels, which run in clusters, to the catalogue.
#pragma once
#include "cosmati/gemm/operands/transposed_source.h"
#include "cosmati/gemm/warp_specialized.h"
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"

namespace cosmati::emulator {

template <class Element>
struct PrintedSource<TransposedSource<Element>> {
  static std::string print() {
    return plan::SourceTraits{.type = type_of<Element>(), .transposed = true}.print();
  }
};
template <class Element, Along along, class Maps>
struct PrintedSource<TensorSource<Element, along, Maps>> {
  static std::string print() {
    char const* const maps = is_same<Maps, AddressedTensors>     ? "AddressedTensors"
                             : is_same<Maps, TensorMapOfProblem> ? "TensorMapOfProblem"
                                                                 : "";
    return plan::SourceTraits{type_of<Element>(), along, 1, true, maps}.print();
  }
};

// How sums of tensor cores are added: as the types require, promoted, or (8-bit floats) not promoted.
enum class Sums : unsigned char { usual, promoted, fast };

constexpr GemmPolicy wgmma_policy(int element_bytes, Partition partition, Sums sums) {
  Multiply const multiply = element_bytes == 8 ? Multiply::mma : Multiply::wgmma;  // f64
  GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, multiply, element_bytes, partition);
  policy.promotes = sums == Sums::promoted;
  policy.fast_sums = sums == Sums::fast;
  return policy;
}

template <class A, class B, class Sum, Partition partition = Partition::split_k, Sums sums = Sums::usual>
struct WgmmaKernel {
  static constexpr GemmPolicy policy =
      wgmma_policy(static_cast<int>(sizeof(typename A::Element)), partition, sums);
  using Traits = WarpSpecializedTraits<policy, A, B, Sum, HostEpilogue, HostDestination>;
  static program::KernelSpec spec(char const* scheduler = "") {
    return {.entry = "warp_specialized_kernel",
            .traits = printed_traits<policy, A, B, Sum>(),
            .scheduler = scheduler};
  }
};

// A kernel<...> that takes Parameters.
template <auto kernel, class Traits, class Parameters>
void add_clusters(KernelTable& table, program::KernelSpec const& spec) {
  table[spec.key()] = [](Grid grid, int threads, unsigned, void const* parameters, int host_threads) {
    launch_kernel_clusters<kernel>(grid, {Traits::cluster}, threads, sizeof(typename Traits::SharedStorage),
                                   *static_cast<Parameters const*>(parameters), host_threads);
  };
}

}  // namespace cosmati::emulator
