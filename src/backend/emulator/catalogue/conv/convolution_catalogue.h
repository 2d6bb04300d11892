// Common parts of the emulator's convolution kernels, and the registration of products in the catalogue.
#pragma once
#include <algorithm>

#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/direct.h"
#include "cosmati/conv/phases.h"
#include "cosmati/conv/window_source.h"
#include "cosmati/gemm/kernel.h"
#include "reference/epilogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/kernel_parts.h"
#include "src/plan/conv/product_program.h"
#include "src/plan/emulated/policy.h"

namespace cosmati::plan {

// Like those of direct_tiled.h, for D of a type known at run time.
inline DigitArguments const& digits_of(HostDestinationArguments const& d) { return d.digits; }
template <class Destination>
void store_result(HostDestinationArguments const& d, Index offset, double value) {
  cosmati::store(d.type, d.digits.data, offset, value);
}

}  // namespace cosmati::plan

namespace cosmati::emulator {

// Adds a kernel with TMA or wgmma, which runs as clusters of one block.
template <auto kernel, class Parameters>
void add_async_kernel(KernelTable& table, char const* entry, std::string traits) {
  program::KernelSpec const spec{.entry = entry, .traits = std::move(traits)};
  table[spec.key()] = [](Grid grid, int threads, unsigned shared_bytes, void const* parameters,
                         int host_threads) {
    launch_kernel_clusters<kernel>(grid, {1}, threads, shared_bytes,
                                   *static_cast<Parameters const*>(parameters), host_threads);
  };
}

struct ConvolutionHostEpilogue {
  using Real = double;
  using Arguments = plan::HostEpilogueArguments;
  struct Tile {
    Arguments arguments;
    Index group, first_m, first_n;
    Tile(Arguments const& all, Index batch, Index m, Index n)
        : arguments(all), group(batch), first_m(m), first_n(n) {}
  };
  template <int count>
  static void apply(Tile const& tile, int m, int n, int valid, double (&value)[count]) {
    if (tile.arguments.form->identity) return;
    for (int i = 0; i < std::min(valid, count); ++i) {
      reference::Position at{};
      for (int d = 0; d < 4; ++d)
        at[d] = tile.arguments.form->position("nkpq"[d], tile.group, tile.first_m + m, tile.first_n + n + i);
      value[i] = (*tile.arguments.expression)(value[i], 0, at);
    }
  }
};

struct ConvolutionHostDestination {
  static constexpr int width = 4;
  using Arguments = plan::HostDestinationArguments;
  struct Tile {
    Arguments arguments;
    Index batch, first_m, first_n;
    Tile(Arguments const& all, Index group, Index m, Index n)
        : arguments(all), batch(group), first_m(m), first_n(n) {}
    static Index offset(DigitExtents const& extents, Index const (&stride)[3], Index index) {
      Digits const at = extents.digits(static_cast<int>(index));
      return at.first * stride[0] + at.middle * stride[1] + at.last * stride[2];
    }
    template <int count>
    void store(int m, int n, int valid, double const (&value)[count]) const {
      DigitArguments const& d = arguments.digits;
      Index const row = batch * d.batch_stride + offset(d.row_extents, d.row_stride, first_m + m);
      for (int i = 0; i < std::min(valid, count); ++i)
        cosmati::store(arguments.type, d.data,
                       row + offset(d.column_extents, d.column_stride, first_n + n + i), value[i]);
    }
  };
};

// Calls use(Sum{}) with each accumulator type.
template <class Use>
void for_sums(Use const& use) {
  use(f64{}), use(s32{}), use(f32{});
}
template <class Sum>
constexpr DataType type_of() {
  return is_same<Sum, f64> ? DataType::f64 : is_same<Sum, s32> ? DataType::s32 : DataType::f32;
}

using ConvolutionHostParameters =
    GemmParameters<WindowArguments, WindowArguments, ConvolutionHostEpilogue::Arguments,
                   ConvolutionHostDestination::Arguments>;

// A single product is one phase.
using ConvolutionHostPhases = PhasesParameters<ConvolutionHostParameters, max_phases_of_launch>;

template <GemmPolicy policy, class SourceA, class SourceB, class Sum>
void add_product(KernelTable& table, plan::WindowSourceTraits const& a, plan::WindowSourceTraits const& b) {
  using Traits =
      GemmTraits<policy, SourceA, SourceB, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  plan::KernelTypes const types = plan::emulated_types(type_of<Sum>());
  program::KernelSpec const spec{
      .entry = "gemm_of_phases_kernel",
      .traits = plan::ProductTraits{policy, a, b, types.sum, types.epilogue, types.destination}.print(),
      .phases = max_phases_of_launch};
  table[spec.key()] = [](Grid grid, int, unsigned, void const* parameters, int host_threads) {
    launch_kernel<&gemm_of_phases_kernel<Traits, max_phases_of_launch>>(
        grid, Traits::threads, sizeof(typename Traits::SharedStorage),
        *static_cast<ConvolutionHostPhases const*>(parameters), host_threads);
  };
}

// Adds a product whose operands have the same source type.
template <GemmPolicy policy, DataType type, class Element, class Sum, Along along, int width,
          DepthDigits digits>
void add_alike(KernelTable& table) {
  using Source = WindowSource<Element, along, width, digits, true>;
  plan::WindowSourceTraits const source{type, along, width, digits == DepthDigits::stepwise, true};
  add_product<policy, Source, Source, Sum>(table, source, source);
}
template <GemmPolicy policy, DataType type, class Element, class Sum>
void add_narrow(KernelTable& table) {
  add_alike<policy, type, Element, Sum, Along::k, 1, DepthDigits::stepwise>(table);
  add_alike<policy, type, Element, Sum, Along::k, 1, DepthDigits::each>(table);
}
// With 16-byte runs: along m and n, or along k with one tap per step.
template <GemmPolicy policy, DataType type, class Element, class Sum>
void add_all_widths(KernelTable& table) {
  constexpr int full = 16 / static_cast<int>(sizeof(Element));
  add_narrow<policy, type, Element, Sum>(table);
  add_alike<policy, type, Element, Sum, Along::mn, full, DepthDigits::each>(table);
  add_alike<policy, type, Element, Sum, Along::k, full, DepthDigits::stepwise>(table);
}

}  // namespace cosmati::emulator
