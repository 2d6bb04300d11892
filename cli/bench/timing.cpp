// Times calls on the CPU.
#include "cli/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace cosmati::cli {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Slice time_slice(std::function<void()> const& call, double seconds) {
  constexpr double min_sample = 20e-6;
  Slice slice;
  long long group = 1;
  auto const begin = Clock::now();
  do {
    auto const start = Clock::now();
    for (long long i = 0; i < group; ++i) call();
    double const elapsed = seconds_since(start);
    slice.samples.push_back(elapsed / static_cast<double>(group));
    if (elapsed < min_sample) group *= 2;
  } while (seconds_since(begin) < seconds);
  slice.minimum = *std::min_element(slice.samples.begin(), slice.samples.end());
  return slice;
}

bool warm_up(std::function<void()> const& call) {
  std::vector<double> minima;
  auto const begin = Clock::now();
  while (seconds_since(begin) < 2) {
    minima.push_back(time_slice(call, 0.05).minimum);
    if (minima.size() < 3) continue;
    auto const [low, high] = std::minmax_element(minima.end() - 3, minima.end());
    if (*high <= 1.02 * *low) return true;
  }
  return false;
}

std::vector<double> medians_in_turns(std::size_t count, int rounds,
                                     std::function<double(std::size_t)> const& measure) {
  std::vector<std::vector<double>> seconds(count);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t turn = 0; turn < count; ++turn) {
      std::size_t const one = round % 2 == 0 ? turn : count - 1 - turn;
      seconds[one].push_back(measure(one));
    }
  std::vector<double> medians;
  for (auto const& one : seconds) medians.push_back(quantile(one, 0.5));
  return medians;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  auto const rank = std::lround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

Interval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  std::size_t const n = values.size();
  // The number of values below the median is binomial(n, 1/2): discards the outer `rank` values on each side
  // as long as their probability stays below 2.5%.
  double probability = std::pow(0.5, static_cast<double>(n)), tail = 0;
  std::size_t rank = 0;
  for (std::size_t k = 0; k < n; ++k) {
    tail += probability;
    if (tail > 0.025) break;
    rank = k;
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  double const middle = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {middle, values[rank], values[n - 1 - rank]};
}

}  // namespace cosmati::cli
