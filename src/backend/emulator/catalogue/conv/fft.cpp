// The emulator's kernels before and after the Fourier transforms, for all data types.
#include <type_traits>

#include "cosmati/conv/fft/fft.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/plan/conv/fft/fft_program.h"

namespace cosmati::emulator {
namespace {

struct HostElements {
  template <class Real>
  static Real load(void const* data, DataType type, Index at) {
    check_access(static_cast<std::byte const*>(data) + at * size_of(type), size_of(type));
    return static_cast<Real>(cosmati::load(type, data, at));
  }
};

template <class Real, bool across>
void add_across(KernelTable& table) {
  constexpr DataType real = type_of<Real>();
  constexpr FftPlanesPolicy planes{.across = across};
  add_kernel<&fft_planes_kernel<FftPlanesTraits<planes, HostElements, Real>>, FftPlanesParameters>(
      table, "fft_planes_kernel", plan::FftPlanesTraits{planes, "HostElements", real}.print());
  auto const add_result = [&]<bool image_is_a>(std::bool_constant<image_is_a>) {
    constexpr FftResultPolicy policy{.across = across, .image_is_a = image_is_a};
    using Traits = FftResultTraits<policy, Real, ConvolutionHostEpilogue, ConvolutionHostDestination>;
    add_kernel<&fft_result_kernel<Traits>, typename Traits::Params>(
        table, "fft_result_kernel",
        plan::FftResultTraits{policy, real, "HostEpilogue", "HostDestination"}.print());
  };
  add_result(std::true_type{}), add_result(std::false_type{});
}

template <class Real, class Factor, FftDoubled doubled>
void add_factor(KernelTable& table, DataType factor) {
  auto const add = [&]<bool twice>(std::bool_constant<twice>) {
    constexpr FftFactorPolicy policy{.twice = twice, .doubled = doubled};
    add_kernel<&fft_factor_kernel<FftFactorTraits<policy, Real, Factor>>, FftMatrixParameters>(
        table, "fft_factor_kernel", plan::FftFactorTraits{policy, type_of<Real>(), factor}.print());
  };
  add(std::true_type{}), add(std::false_type{});
}

template <class Real, FftDoubled doubled>
void add_doubled(KernelTable& table) {
  add_factor<Real, Real, doubled>(table, type_of<Real>());
  if constexpr (is_same<Real, f32>) add_factor<f32, tf32, doubled>(table, DataType::tf32);
  constexpr FftSumsPolicy policy{.doubled = doubled};
  add_kernel<&fft_sums_kernel<FftSumsTraits<policy, Real>>, FftMatrixParameters>(
      table, "fft_sums_kernel", plan::FftSumsTraits{policy, type_of<Real>()}.print());
}

template <class Real>
void add_all(KernelTable& table) {
  add_across<Real, true>(table), add_across<Real, false>(table);
  add_doubled<Real, FftDoubled::image>(table), add_doubled<Real, FftDoubled::filter>(table);
  add_kernel<&fft_product_kernel<FftProductTraits<Real>>, FftProductParameters>(
      table, "fft_product_kernel", plan::FftProductTraits{type_of<Real>()}.print());
}

}  // namespace

void add_fft(KernelTable& table) { add_all<f32>(table), add_all<f64>(table); }

}  // namespace cosmati::emulator
