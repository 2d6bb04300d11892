// Peaks of this GPU, and its current clock.
#pragma once
#include <map>
#include <optional>

#include "cli/bench/device_peaks.h"
#include "cosmati/core/number.h"
#include "cosmati/tile/multiply.h"

namespace cosmati::cli {

class GpuGauge {
 public:
  explicit GpuGauge(Gpu const& gpu) : gpu_(gpu), clock_(gpu, cuda::Peak::fma_f32) {}

  Gpu const& gpu() const { return gpu_; }
  cuda::PeakRate const& peak(cuda::Peak peak);  // measured when it is first asked for
  std::map<cuda::Peak, cuda::PeakRate> const& peaks() const { return peaks_; }  // those that were measured
  double copy_rate();  // bytes read and written a second
  // The minimum time of a fixed 0.1 ms kernel divided by its current time: the current clock relative to the
  // maximum, which power or temperature may reduce.
  double clock_share();

 private:
  Gpu gpu_;
  cuda::PeakKernel clock_;
  double least_ = 0;
  std::map<cuda::Peak, cuda::PeakRate> peaks_;
  std::optional<double> copy_rate_;
};

// The peak that products of these factors by this instruction are measured against. Nothing where none is
// measured, as for factors in bytes by mma.sync where the GPU takes it apart.
std::optional<cuda::Peak> peak_for(DataType factor, DataType sum, Multiply multiply, Gpu const& gpu);

}  // namespace cosmati::cli
