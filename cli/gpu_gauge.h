// What this GPU can do at most, and how fast it runs at present.
#pragma once
#include <map>
#include <optional>

#include "cosmati/core/number.h"
#include "src/backend/cuda/peak.h"

namespace cosmati::cli {

class GpuGauge {
 public:
  explicit GpuGauge(Gpu const& gpu) : gpu_(gpu), clock_(gpu, cuda::Peak::fma_f32) {}

  Gpu const& gpu() const { return gpu_; }
  double peak(cuda::Peak peak);  // operations a second; measured when it is first asked for
  std::map<cuda::Peak, double> const& peaks() const { return peaks_; }  // those that were measured
  double copy_rate();                                                   // bytes read and written a second
  // The least time that a fixed kernel of some 0.1 ms took so far, by the time that it takes now: the share
  // of its clock that the device runs at, where power or heat hold it back.
  double clock_share();

 private:
  Gpu gpu_;
  cuda::PeakKernel clock_;
  double least_ = 0;
  std::map<cuda::Peak, double> peaks_;
  std::optional<double> copy_rate_;
};

// The peak that products of these factors are measured against: of SIMT instructions. Nothing for types that
// have none.
std::optional<cuda::Peak> peak_for(DataType factor, DataType sum);

}  // namespace cosmati::cli
