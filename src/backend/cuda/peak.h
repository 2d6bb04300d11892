// What a GPU can do at most, measured: small kernels of nothing but multiply-adds, and a copy.
#pragma once
#include <string>

#include "cosmati/ops/device.h"
#include "src/backend/cuda/module.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

enum class Peak : unsigned char { fma_f32, fma_f64, half2, dp4a };
inline constexpr Peak all_peaks[] = {Peak::fma_f32, Peak::fma_f64, Peak::half2, Peak::dp4a};

char const* name_of(Peak peak);  // "f32 fma"

struct PeakParameters {
  long long steps = 0;
  double factor = 0, addend = 0;
  void* result = nullptr;  // one value, written if a sum is what no sum can be
};

// Each thread walks `chains` independent chains of multiply-adds, `rounds` in a step.
inline constexpr int peak_chains = 16, peak_rounds = 16, peak_threads = 256;
jit::Source peak_source(Peak peak, std::string const& architecture);

class PeakKernel {
 public:
  PeakKernel(Gpu const& gpu, Peak peak);  // compiles or loads; throws Error

  // Of one run, by events; a step takes about a microsecond.
  double seconds(long long steps);
  double operations(long long steps) const;  // multiplications and additions

 private:
  int ordinal_;
  Peak peak_;
  unsigned blocks_;
  Function function_;
  DeviceBuffer result_;
  Event start_, end_;
};

// Operations a second: the best of some runs of about two milliseconds.
double measured_peak(Gpu const& gpu, Peak peak);
// Bytes read plus bytes written a second by copies from device memory to device memory, far larger than the
// L2 cache.
double measured_copy_rate(Gpu const& gpu);

}  // namespace cosmati::cuda
