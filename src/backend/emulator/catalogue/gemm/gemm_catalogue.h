// The emulator's kernels of products: for each family and type, the runs of A and B along m / n or k, as wide
// as 16 bytes or single elements. The types of their epilogue and destination are determined at run time.
#pragma once
#include <algorithm>

#include "cosmati/gemm/kernel.h"
#include "reference/elements.h"
#include "reference/epilogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/parameters.h"
#include "src/plan/gemm/program/product_kernel.h"

namespace cosmati::emulator {

struct HostEpilogue {
  using Real = double;
  using Arguments = plan::HostProductEpilogue;
  struct Tile {
    Arguments arguments;
    Index batch, first_m, first_n;
    Tile(Arguments const& all, Index at_batch, Index m, Index n)
        : arguments(all), batch(at_batch), first_m(m), first_n(n) {}
    double source_at(reference::Position at) const {
      void const* data = arguments.source_data;
      if (arguments.by_pointers) {
        data = static_cast<void const* const*>(data)[at[0]];
        at[0] = 0;
      }
      return reference::Input(*arguments.source, data)(at);
    }
  };
  template <int count>
  static void apply(Tile const& tile, int m, int n, int valid, double (&value)[count]) {
    if (tile.arguments.expression == nullptr) return;
    for (int i = 0; i < std::min(valid, count); ++i) {
      reference::Position at{tile.batch, tile.first_m + m, tile.first_n + n + i};
      if (tile.arguments.swapped) std::swap(at[1], at[2]);
      double const source = tile.arguments.source != nullptr ? tile.source_at(at) : 0;
      value[i] = (*tile.arguments.expression)(value[i], source, at);
    }
  }
};

struct HostDestination {
  static constexpr int width = 4;
  using Arguments = plan::HostProductDestination;
  class Tile {
   public:
    Tile(Arguments const& arguments, Index batch, Index first_m, Index first_n)
        : arguments_(arguments),
          data_(arguments.matrix.pointers != nullptr ? arguments.matrix.pointers[batch]
                                                     : arguments.matrix.data),
          first_(batch * arguments.matrix.batch_stride + first_m * arguments.matrix.row_stride +
                 first_n * arguments.matrix.column_stride) {}
    template <int count>
    void store(int m, int n, int valid, double const (&value)[count]) const {
      MatrixArguments const& matrix = arguments_.matrix;
      for (int i = 0; i < std::min(valid, count); ++i)
        cosmati::store(arguments_.type, data_,
                       first_ + m * matrix.row_stride + (n + i) * matrix.column_stride, value[i]);
    }

   private:
    Arguments arguments_;
    void* data_;
    Index first_;  // with pointers, the batch stride is 0
  };
};

template <class Element>
constexpr DataType type_of() {
  if constexpr (is_same<Element, f64>) return DataType::f64;
  if constexpr (is_same<Element, f32>) return DataType::f32;
  if constexpr (is_same<Element, tf32>) return DataType::tf32;
  if constexpr (is_same<Element, f16>) return DataType::f16;
  if constexpr (is_same<Element, bf16>) return DataType::bf16;
  if constexpr (is_same<Element, e4m3>) return DataType::e4m3;
  if constexpr (is_same<Element, e5m2>) return DataType::e5m2;
  if constexpr (is_same<Element, s8>) return DataType::s8;
  if constexpr (is_same<Element, u8>) return DataType::u8;
  return DataType::s32;
}

// The sources' traits, as the plan prints them.
template <class Source>
struct PrintedSource;
template <class Element, Along along, int width>
struct PrintedSource<StridedSource<Element, along, width>> {
  static std::string print() { return plan::SourceTraits{type_of<Element>(), along, width}.print(); }
};

template <GemmPolicy policy, class A, class B, class Sum>
std::string printed_traits() {
  return plan::ProductKernelTraits{
      policy,         PrintedSource<A>::print(), PrintedSource<B>::print(), type_of<Sum>(),
      "HostEpilogue", "HostDestination"}
      .print();
}

// A kernel<Traits> that takes Parameters.
template <auto kernel, class Traits, class Parameters>
void add_tiled(KernelTable& table, program::KernelSpec const& spec) {
  table[spec.key()] = [](Grid grid, int threads, unsigned, void const* parameters, int host_threads) {
    launch_kernel<kernel>(grid, threads, sizeof(typename Traits::SharedStorage),
                          *static_cast<Parameters const*>(parameters), host_threads);
  };
}

template <GemmPolicy policy, class A, class B, class Sum>
void add_gemm(KernelTable& table) {
  using Traits = GemmTraits<policy, A, B, Sum, HostEpilogue, HostDestination>;
  add_tiled<&gemm_kernel<Traits>, Traits, typename Traits::Params>(
      table, {.entry = "gemm_kernel", .traits = printed_traits<policy, A, B, Sum>()});
}

// Operands of either major.
template <GemmPolicy policy, class ElementA, class ElementB, class Sum, int width>
void add_directions(KernelTable& table) {
  constexpr Along outer = Along::mn, depth = Along::k;
  using OuterA = StridedSource<ElementA, outer, width>;
  using DeepA = StridedSource<ElementA, depth, width>;
  using OuterB = StridedSource<ElementB, outer, width>;
  using DeepB = StridedSource<ElementB, depth, width>;
  add_gemm<policy, OuterA, OuterB, Sum>(table), add_gemm<policy, OuterA, DeepB, Sum>(table);
  add_gemm<policy, DeepA, OuterB, Sum>(table), add_gemm<policy, DeepA, DeepB, Sum>(table);
}
template <GemmPolicy policy, class ElementA, class ElementB, class Sum>
void add_widths(KernelTable& table) {
  add_directions<policy, ElementA, ElementB, Sum, 1>(table);
  add_directions<policy, ElementA, ElementB, Sum, 16 / static_cast<int>(sizeof(ElementA))>(table);
}
// Kernels with either SIMT main loop.
template <Multiply multiply, class ElementA, class ElementB, class Sum>
void add_simple(KernelTable& table) {
  add_widths<emulated_policy(MainLoop::double_buffered, multiply), ElementA, ElementB, Sum>(table);
  add_widths<emulated_policy(MainLoop::multistage, multiply), ElementA, ElementB, Sum>(table);
}

}  // namespace cosmati::emulator
