// Measures a GPU's peaks and its current clock.
#include "cli/bench/gpu_peaks.h"

#include <algorithm>

namespace cosmati::cli {

cuda::PeakRate const& GpuPeaks::peak(cuda::Peak peak) {
  auto const known = peaks_.find(peak);
  return known != peaks_.end() ? known->second : peaks_[peak] = cuda::measured_peak(gpu_, peak);
}

double GpuPeaks::copy_rate() {
  if (!copy_rate_) copy_rate_ = cuda::measured_copy_rate(gpu_);
  return *copy_rate_;
}

double GpuPeaks::clock_share() {
  constexpr long long steps = 100;
  double const seconds = clock_.seconds(steps);
  min_ = min_ == 0 ? seconds : std::min(min_, seconds);
  return min_ / seconds;
}

namespace {

// The peaks of mma.sync and of wgmma, which does not multiply f64.
struct TensorPeaks {
  DataType factor;
  cuda::Peak of_warps;
  std::optional<cuda::Peak> of_warpgroups;
};
constexpr TensorPeaks tensor_peaks[] = {
    {DataType::f64, cuda::Peak::mma_f64, {}},
    {DataType::tf32, cuda::Peak::mma_tf32, cuda::Peak::wgmma_tf32},
    {DataType::f16, cuda::Peak::mma_f16, cuda::Peak::wgmma_f16},
    {DataType::bf16, cuda::Peak::mma_bf16, cuda::Peak::wgmma_bf16},
    {DataType::e4m3, cuda::Peak::mma_e4m3, cuda::Peak::wgmma_e4m3},
    {DataType::e5m2, cuda::Peak::mma_e4m3, cuda::Peak::wgmma_e4m3},
    {DataType::s8, cuda::Peak::mma_s8, cuda::Peak::wgmma_s8},
    {DataType::u8, cuda::Peak::mma_s8, cuda::Peak::wgmma_s8},
};

std::optional<cuda::Peak> peak_of_tensor_cores(DataType factor, bool by_warpgroups) {
  for (TensorPeaks const& peaks : tensor_peaks)
    if (peaks.factor == factor) return by_warpgroups ? peaks.of_warpgroups : peaks.of_warps;
  return {};
}

std::optional<cuda::Peak> peak_of_threads(DataType factor, DataType sum) {
  if (sum == DataType::f64) return cuda::Peak::fma_f64;
  if (sum == DataType::f16) return cuda::Peak::half2;
  if (sum == DataType::f32) return cuda::Peak::fma_f32;
  if (factor == DataType::s8 || factor == DataType::u8) return cuda::Peak::dp4a;
  return {};
}

}  // namespace

std::optional<cuda::Peak> peak_for(DataType factor, DataType sum, Multiply multiply, Gpu const& gpu) {
  bool const wgmma = multiply == Multiply::wgmma;
  std::optional<cuda::Peak> const peak =
      wgmma || multiply == Multiply::mma ? peak_of_tensor_cores(factor, wgmma) : peak_of_threads(factor, sum);
  return peak && cuda::has_peak(*peak, gpu) ? peak : std::nullopt;
}

}  // namespace cosmati::cli
