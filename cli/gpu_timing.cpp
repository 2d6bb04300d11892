// Timing by events.
#include "cli/gpu_timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace cosmati::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double least_sample = 50e-6;  // an event costs about a microsecond of the device
constexpr double most_samples = 256;    // in flight: a stream holds about a thousand pieces of work

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

cuda::Event& GpuTimer::event(std::size_t index) {
  while (events_.size() <= index) events_.emplace_back(ordinal_);
  return events_[index];
}

Slice GpuTimer::time_slice(GpuCall& call, double seconds) {
  Slice slice;
  for (double elapsed = 0; elapsed < seconds || slice.samples.empty();) {
    double const estimate = call.estimate;
    double const in_group = estimate > 0 ? std::clamp(std::ceil(least_sample / estimate), 1.0, 100.0) : 1.0;
    double const wanted = estimate > 0 ? (seconds - elapsed) / (estimate * in_group) : 1.0;
    auto const count = static_cast<std::size_t>(std::clamp(std::round(wanted), 1.0, most_samples / in_group));
    event(0).record(nullptr);
    for (std::size_t i = 1; i <= count; ++i) {
      for (double j = 0; j < in_group; ++j) call.enqueue();
      event(i).record(nullptr);
    }
    event(count).wait();
    std::vector<double> samples;
    for (std::size_t i = 1; i <= count; ++i)
      samples.push_back(event(i).seconds_since(event(i - 1)) / in_group);
    elapsed += event(count).seconds_since(event(0));
    call.estimate = quantile(samples, 0.5);
    slice.samples.insert(slice.samples.end(), samples.begin(), samples.end());
  }
  slice.least = *std::min_element(slice.samples.begin(), slice.samples.end());
  return slice;
}

bool GpuTimer::warm_up(GpuCall& call) {
  std::vector<double> medians;
  auto const begin = Clock::now();
  while (seconds_since(begin) < 3) {
    medians.push_back(quantile(time_slice(call, 0.05).samples, 0.5));
    if (medians.size() < 3) continue;
    auto const [low, high] = std::minmax_element(medians.end() - 3, medians.end());
    if (*high <= 1.01 * *low) return true;
  }
  return false;
}

double GpuTimer::host_seconds(GpuCall& call) {
  constexpr int most_rounds = 20, calls = 16;
  std::vector<double> rounds;
  auto const begin = Clock::now();
  for (int round = 0; round < most_rounds && (round < 3 || seconds_since(begin) < 0.2); ++round) {
    cuda::wait(ordinal_, nullptr);
    auto const start = Clock::now();
    for (int i = 0; i < calls; ++i) call.enqueue();
    rounds.push_back(seconds_since(start) / calls);
  }
  cuda::wait(ordinal_, nullptr);
  return quantile(rounds, 0.5);
}

}  // namespace cosmati::cli
