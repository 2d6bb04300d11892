// Measured peaks of a GPU, from single-instruction kernels and a copy.
#pragma once
#include <string>

#include "cli/bench/device_peak_source.h"
#include "cosmati/ops/device.h"
#include "src/backend/cuda/driver/module.h"

namespace cosmati::cuda {

class PeakKernel {
 public:
  PeakKernel(Gpu const& gpu, Peak peak);  // compiles or loads the kernel; throws Error

  // The time of `launches` consecutive launches, measured by events; a step takes one to three microseconds.
  double seconds(long long steps, int launches = 1);
  double operations(long long steps) const;  // operations of one launch

 private:
  int ordinal_;
  Peak peak_;
  unsigned blocks_;
  Function function_;
  DeviceBuffer result_;
  Event start_, end_;
};

// Operations per second.
struct PeakRate {
  double burst = 0;      // best of several runs of about 2 ms each
  double sustained = 0;  // over 0.5 s of continuous load after a 0.25 s warm-up; power-limited
  friend bool operator==(PeakRate const&, PeakRate const&) = default;
};
PeakRate measured_peak(Gpu const& gpu, Peak peak);

// The peak to compare a kernel's rate with: the sustained rate for tensor cores, whose clock drops within
// milliseconds, and the burst rate otherwise.
double ceiling_of(Peak peak, PeakRate const& rate);

// Bytes read plus bytes written per second by device-to-device copies far larger than the L2 cache.
double measured_copy_rate(Gpu const& gpu);

}  // namespace cosmati::cuda
