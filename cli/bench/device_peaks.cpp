// Measures the peaks of a GPU.
#include "cli/bench/device_peaks.h"

#include <algorithm>

#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/kernels.h"

namespace cosmati::cuda {
namespace {

Function load(Gpu const& gpu, Peak peak) {
  return load_kernel(gpu.ordinal, peak_source(peak, architecture_of(gpu)));
}

}  // namespace

PeakKernel::PeakKernel(Gpu const& gpu, Peak peak)
    : ordinal_(gpu.ordinal),
      peak_(peak),
      blocks_(static_cast<unsigned>(gpu.multiprocessors * blocks_of(peak, gpu.threads_per_multiprocessor))),
      function_(load(gpu, peak)),
      result_(gpu.ordinal, sizeof(double)),
      start_(gpu.ordinal),
      end_(gpu.ordinal) {}

double PeakKernel::seconds(long long steps, int launches) {
  PeakParameters const parameters = parameters_of(peak_, steps, result_.data());
  start_.record(nullptr);
  for (int i = 0; i < launches; ++i) function_.launch({blocks_, 1, 1}, peak_threads, 0, parameters, nullptr);
  end_.record(nullptr);
  end_.wait();
  return end_.seconds_since(start_);
}

double PeakKernel::operations(long long steps) const {
  return operations_of_step(peak_) * static_cast<double>(steps) * blocks_;
}

PeakRate measured_peak(Gpu const& gpu, Peak peak) {
  constexpr long long steps = 1000;
  constexpr int warm_runs = 10, runs = 20;
  constexpr double sustained_seconds = 0.5;
  PeakKernel kernel(gpu, peak);
  for (int i = 0; i < warm_runs; ++i) (void)kernel.seconds(steps);
  double minimum = kernel.seconds(steps);
  for (int i = 1; i < runs; ++i) minimum = std::min(minimum, kernel.seconds(steps));
  int const launches = static_cast<int>(std::clamp(sustained_seconds / minimum, 2.0, 10000.0));
  (void)kernel.seconds(steps, launches / 2);
  double const operations = kernel.operations(steps);
  return {operations / minimum, operations * launches / kernel.seconds(steps, launches)};
}

double ceiling_of(Peak peak, PeakRate const& rate) {
  return is_of_tensor_cores(peak) ? rate.sustained : rate.burst;
}

double measured_copy_rate(Gpu const& gpu) {
  constexpr int runs = 10;
  long long const wanted = std::max(8 * gpu.l2_bytes, 1LL << 30);
  auto const bytes = static_cast<std::size_t>(std::clamp<long long>(wanted, 1 << 20, gpu.memory_bytes / 8));
  DeviceBuffer const from(gpu.ordinal, bytes), to(gpu.ordinal, bytes);
  fill(gpu.ordinal, from.data(), 1, bytes, nullptr);
  Event start(gpu.ordinal), end(gpu.ordinal);
  double minimum = 0;
  for (int i = 0; i < runs; ++i) {
    start.record(nullptr);
    copy_on_device(gpu.ordinal, to.data(), from.data(), bytes, nullptr);
    end.record(nullptr);
    end.wait();
    double const seconds = end.seconds_since(start);
    minimum = i == 0 ? seconds : std::min(minimum, seconds);
  }
  return 2.0 * static_cast<double>(bytes) / minimum;
}

}  // namespace cosmati::cuda
