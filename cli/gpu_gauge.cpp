// A GPU's ceilings and clock.
#include "cli/gpu_gauge.h"

#include <algorithm>

namespace cosmati::cli {

double GpuGauge::peak(cuda::Peak peak) {
  auto const known = peaks_.find(peak);
  return known != peaks_.end() ? known->second : peaks_[peak] = cuda::measured_peak(gpu_, peak);
}

double GpuGauge::copy_rate() {
  if (!copy_rate_) copy_rate_ = cuda::measured_copy_rate(gpu_);
  return *copy_rate_;
}

double GpuGauge::clock_share() {
  constexpr long long steps = 100;
  double const seconds = clock_.seconds(steps);
  least_ = least_ == 0 ? seconds : std::min(least_, seconds);
  return least_ / seconds;
}

std::optional<cuda::Peak> peak_for(DataType factor, DataType sum) {
  if (sum == DataType::f64) return cuda::Peak::fma_f64;
  if (sum == DataType::f16) return cuda::Peak::half2;
  if (sum == DataType::f32) return cuda::Peak::fma_f32;
  if (factor == DataType::s8 || factor == DataType::u8) return cuda::Peak::dp4a;
  return {};
}

}  // namespace cosmati::cli
