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

std::optional<cuda::Peak> peak_of_warps(DataType factor) {
  switch (factor) {
    case DataType::f64: return cuda::Peak::mma_f64;
    case DataType::tf32: return cuda::Peak::mma_tf32;
    case DataType::f16: return cuda::Peak::mma_f16;
    case DataType::bf16: return cuda::Peak::mma_bf16;
    case DataType::e4m3:
    case DataType::e5m2: return cuda::Peak::mma_e4m3;
    case DataType::s8:
    case DataType::u8: return cuda::Peak::mma_s8;
    default: return {};
  }
}

std::optional<cuda::Peak> peak_of_warpgroups(DataType factor) {
  switch (factor) {
    case DataType::tf32: return cuda::Peak::wgmma_tf32;
    case DataType::f16: return cuda::Peak::wgmma_f16;
    case DataType::bf16: return cuda::Peak::wgmma_bf16;
    case DataType::e4m3:
    case DataType::e5m2: return cuda::Peak::wgmma_e4m3;
    case DataType::s8:
    case DataType::u8: return cuda::Peak::wgmma_s8;
    default: return {};
  }
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
  std::optional<cuda::Peak> const peak = multiply == Multiply::wgmma ? peak_of_warpgroups(factor)
                                         : multiply == Multiply::mma ? peak_of_warps(factor)
                                                                     : peak_of_threads(factor, sum);
  return peak && cuda::has_peak(*peak, gpu) ? peak : std::nullopt;
}

}  // namespace cosmati::cli
