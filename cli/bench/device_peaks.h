// What a GPU can do at most, measured: small kernels of nothing but one instruction, and a copy.
#pragma once
#include <string>

#include "cli/bench/device_peak_source.h"
#include "cosmati/ops/device.h"
#include "src/backend/cuda/driver/module.h"

namespace cosmati::cuda {

class PeakKernel {
 public:
  PeakKernel(Gpu const& gpu, Peak peak);  // compiles or loads; throws Error

  // Of `launches` launches one after the other, by events; a step takes one to three microseconds.
  double seconds(long long steps, int launches = 1);
  double operations(long long steps) const;  // multiplications and additions of a launch

 private:
  int ordinal_;
  Peak peak_;
  unsigned blocks_;
  Function function_;
  DeviceBuffer result_;
  Event start_, end_;
};

// Operations a second.
struct PeakRate {
  double burst = 0;      // the best of some runs of about two milliseconds
  double sustained = 0;  // of half a second without a pause, after a quarter: what power allows
  friend bool operator==(PeakRate const&, PeakRate const&) = default;
};
PeakRate measured_peak(Gpu const& gpu, Peak peak);

// Of the two, what a kernel's rate is compared with: on tensor cores the sustained one, since their clock
// falls within milliseconds and a benchmark takes longer; else the burst.
double ceiling_of(Peak peak, PeakRate const& rate);

// Bytes read plus bytes written a second by copies from device memory to device memory, far larger than the
// L2 cache.
double measured_copy_rate(Gpu const& gpu);

}  // namespace cosmati::cuda
