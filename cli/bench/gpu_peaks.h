// Peaks of this GPU, and its current clock.
#pragma once
#include <map>
#include <optional>

#include "cli/bench/device_peaks.h"
#include "cosmati/core/number.h"
#include "cosmati/tile/multiply.h"

namespace cosmati::cli {

class GpuPeaks {
 public:
  explicit GpuPeaks(Gpu const& gpu) : gpu_(gpu), clock_(gpu, cuda::Peak::fma_f32) {}

  Gpu const& gpu() const { return gpu_; }
  cuda::PeakRate const& peak(cuda::Peak peak);                                  // measured on first use
  std::map<cuda::Peak, cuda::PeakRate> const& peaks() const { return peaks_; }  // the peaks measured so far
  double copy_rate();  // bytes read plus bytes written per second
  // The minimum time of a fixed 0.1 ms kernel divided by its current time: the current clock relative to the
  // maximum, which power or temperature may reduce.
  double clock_share();

 private:
  Gpu gpu_;
  cuda::PeakKernel clock_;
  double min_ = 0;
  std::map<cuda::Peak, cuda::PeakRate> peaks_;
  std::optional<double> copy_rate_;
};

// The measured peak that applies to products of these factors by this instruction. Empty if none is measured,
// e.g. for 8-bit factors by mma.sync on a GPU that splits the instruction.
std::optional<cuda::Peak> peak_for(DataType factor, DataType sum, Multiply multiply, Gpu const& gpu);

}  // namespace cosmati::cli
