// The transforms of Winograd convolution by tile size and direction, for all data types.
#include "cosmati/conv/winograd/filter_gradient.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/plan/conv/winograd/winograd_filter.h"
#include "src/plan/conv/winograd/winograd_program.h"

namespace cosmati::emulator {
namespace {

struct HostElements {
  template <int width>
  static void load(void const* data, DataType type, Index at, int valid, float (&to)[width]) {
    if (valid == width) check_run<width>(data, type, at);
    for (int i = 0; i < width; ++i)
      to[i] = i < valid ? static_cast<float>(cosmati::load(type, data, at + i)) : 0;
  }
  template <int width>
  static void store(void* data, DataType type, Index at, float const (&from)[width]) {
    check_run<width>(data, type, at);
    for (int i = 0; i < width; ++i) cosmati::store(type, data, at + i, static_cast<double>(from[i]));
  }

 private:
  template <int width>
  static void check_run(void const* data, DataType type, Index at) {
    check_access(static_cast<std::byte const*>(data) + at * size_of(type), width * size_of(type));
  }
};

template <int tile, int taps, bool channels_last, bool together>
void add_image(KernelTable& table) {
  constexpr WinogradImagePolicy policy{.tile = tile,
                                       .taps = taps,
                                       .channels_last = channels_last,
                                       .channels = channels_last ? winograd_channels(tile + taps - 1) : 1,
                                       .together = together};
  using Traits = WinogradImageTraits<policy, HostElements, HostElements>;
  add_kernel<&winograd_image_kernel<Traits>, WinogradImageParameters>(
      table, "winograd_image_kernel",
      plan::WinogradImageTraits{policy, "HostElements", "HostElements"}.print());
}

template <int tile, int taps, WinogradRun run>
void add_result(KernelTable& table) {
  constexpr WinogradResultPolicy policy{.tile = tile, .taps = taps, .run = run};
  using Traits = WinogradResultTraits<policy, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_kernel<&winograd_result_kernel<Traits>, typename Traits::Params>(
      table, "winograd_result_kernel",
      plan::WinogradResultTraits{policy, "HostEpilogue", "HostDestination"}.print());
}

template <int tile, bool channels_last>
void add_gradient(KernelTable& table) {
  constexpr WinogradGradientPolicy policy{.tile = tile, .channels_last = channels_last};
  using Traits = WinogradGradientTraits<policy, HostElements, HostElements>;
  add_kernel<&winograd_gradient_kernel<Traits>, WinogradGradientParameters>(
      table, "winograd_gradient_kernel",
      plan::WinogradGradientTraits{policy, "HostElements", "HostElements"}.print());
}

template <int tile, bool swapped>
void add_taps(KernelTable& table) {
  constexpr WinogradTapsPolicy policy{.tile = tile, .swapped = swapped};
  using Traits = WinogradTapsTraits<policy, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_kernel<&winograd_taps_kernel<Traits>, typename Traits::Params>(
      table, "winograd_taps_kernel",
      plan::WinogradTapsTraits{policy, "HostEpilogue", "HostDestination"}.print());
}

template <int tile, int taps>
void add_transforms(KernelTable& table) {
  constexpr WinogradFilterPolicy policy{.tile = tile, .taps = taps};
  using FilterTraits = WinogradFilterTraits<policy, HostElements, HostElements>;
  add_kernel<&winograd_filter_kernel<FilterTraits>, WinogradFilterParameters>(
      table, "winograd_filter_kernel",
      plan::WinogradFilterTraits{policy, "HostElements", "HostElements"}.print());
  add_image<tile, taps, false, true>(table), add_image<tile, taps, true, true>(table),
      add_image<tile, taps, true, false>(table);
  add_result<tile, taps, WinogradRun::channels>(table), add_result<tile, taps, WinogradRun::columns>(table),
      add_result<tile, taps, WinogradRun::pixel>(table);
}

template <int tile>
void add_filter_gradient(KernelTable& table) {
  add_gradient<tile, false>(table), add_gradient<tile, true>(table);
  add_taps<tile, false>(table), add_taps<tile, true>(table);
}

}  // namespace

void add_winograd(KernelTable& table) {
  add_transforms<2, 3>(table), add_transforms<4, 3>(table), add_transforms<4, 5>(table);
  add_filter_gradient<2>(table), add_filter_gradient<4>(table);
}

}  // namespace cosmati::emulator
