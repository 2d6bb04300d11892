// Timing on a machine that other programs also use: short slices, minima of slices, medians of minima.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace cosmati::cli {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds of single calls; calls shorter than 20 us are timed in groups.
struct Slice {
  std::vector<double> samples;
  double minimum = 0;
};

// Calls repeatedly for about `seconds`, at least once.
Slice time_slice(std::function<void()> const& call, double seconds);

// Runs slices of 50 ms until the minima of three consecutive ones agree within 2%; returns false if they do
// not within two seconds.
bool warm_up(std::function<void()> const& call);

// Returns the median of `rounds` measurements of each call, interleaved in alternating order, since a device
// that slows down as it warms up would favor the first call.
std::vector<double> medians_in_turns(std::size_t count, int rounds,
                                     std::function<double(std::size_t)> const& measure);

// The `share`-quantile of values in any order; 0.5 is the median.
double quantile(std::vector<double> values, double share);

// The median and a confidence interval of at least 95% for it, from order statistics, which assume no
// distribution. With fewer than six values the interval is their range.
struct Interval {
  double median = 0, low = 0, high = 0;
};
Interval median_interval(std::vector<double> values);

}  // namespace cosmati::cli
