// The emulator's convolution kernels: for each main loop and type, runs of channels as wide as 16 bytes or
// single elements, and a tap a step or depths found one by one.
#pragma once
#include <algorithm>

#include "cosmati/conv/digit_destination.h"
#include "cosmati/conv/direct.h"
#include "cosmati/conv/places.h"
#include "cosmati/conv/window_source.h"
#include "cosmati/gemm/kernel.h"
#include "reference/epilogue.h"
#include "src/backend/emulator/emulated_policy.h"
#include "src/plan/conv/kernel_parts.h"

namespace cosmati::emulator {

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

// Calls use(Sum{}) with each type of sums.
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

// One product is one place.
using ConvolutionHostPlaces = PlacesParameters<ConvolutionHostParameters, most_places_of_launch>;
using LaunchConvolution = void (*)(Grid grid, ConvolutionHostPlaces const& places, int host_threads);

// Which of a type's kernels. `across`: runs lie along m and n; else along k. `lanes`, of f32 alone: single
// elements of a along m, runs of b along n, a tap a step.
struct ConvolutionVariant {
  bool wide, across, stepwise, lanes = false;
};

LaunchConvolution find_convolution_f32(MainLoop main_loop, ConvolutionVariant const& variant);
LaunchConvolution find_convolution_mma(DataType type, ConvolutionVariant const& variant);
LaunchConvolution find_convolution_simple(DataType type, ConvolutionVariant const& variant);  // f64, s8, s32

template <GemmPolicy policy, class SourceA, class SourceB, class Sum>
void launch_product(Grid grid, ConvolutionHostPlaces const& places, int host_threads) {
  using Traits =
      GemmTraits<policy, SourceA, SourceB, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  launch_kernel<&gemm_of_places_kernel<Traits, most_places_of_launch>>(
      grid, Traits::threads, sizeof(typename Traits::SharedStorage), places, host_threads);
}

template <GemmPolicy policy, class Element, class Sum, Along along, int width, DepthDigits digits>
void launch_convolution(Grid grid, ConvolutionHostPlaces const& places, int host_threads) {
  using Source = WindowSource<Element, along, width, digits, true>;
  launch_product<policy, Source, Source, Sum>(grid, places, host_threads);
}

template <GemmPolicy policy, class Element, class Sum>
LaunchConvolution convolution_of(ConvolutionVariant const& variant) {
  constexpr int full = 16 / static_cast<int>(sizeof(Element));
  constexpr auto stepwise = DepthDigits::stepwise, each = DepthDigits::each;
  if constexpr (is_same<Element, f32>) {
    if (variant.lanes)
      return &launch_product<policy, WindowSource<f32, Along::outer, 1, stepwise, true>,
                             WindowSource<f32, Along::outer, full, stepwise, false>, Sum>;
  }
  if (variant.wide && variant.across)
    return &launch_convolution<policy, Element, Sum, Along::outer, full, each>;
  if (variant.wide) return &launch_convolution<policy, Element, Sum, Along::depth, full, stepwise>;
  return variant.stepwise ? &launch_convolution<policy, Element, Sum, Along::depth, 1, stepwise>
                          : &launch_convolution<policy, Element, Sum, Along::depth, 1, each>;
}

}  // namespace cosmati::emulator
