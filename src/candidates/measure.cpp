// Generates data for measurements, and times calls with the host's clock or the device's events.
#include "src/candidates/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::plan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Index pattern_length = 4093;  // a prime, so that the rows of a matrix differ

// Fills `bytes` bytes with values that repeat after pattern_length elements.
std::vector<std::byte> pattern(std::string_view name, DataType type, std::size_t bytes) {
  bool const places = name == "labels" || name == "indices";
  bool const positive = name == "variance" || name == "second";
  std::vector<std::byte> data(bytes);
  auto const size = static_cast<std::size_t>(size_of(type));
  std::size_t const period = static_cast<std::size_t>(pattern_length) * size;
  unsigned state = 12345;
  for (Index i = 0; i < pattern_length && (static_cast<std::size_t>(i) + 1) * size <= bytes; ++i) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes, section 7.1
    double value = static_cast<double>(state >> 8) * 0x1p-23 - 1;
    if (positive) value = std::fabs(value) + 0.01;
    if (is_integer(type)) value = std::floor(value * 8);
    store(type, data.data(), i, places ? 0 : value);
  }
  for (std::size_t done = period; done < bytes; done += period)
    std::memcpy(data.data() + done, data.data(), std::min(period, bytes - done));
  return data;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double measure_on_host(std::function<void()> const& call, double seconds, double limit) {
  double minimum = 0;
  auto const begin = Clock::now();
  do {
    auto const start = Clock::now();
    call();
    double const elapsed = seconds_since(start);
    minimum = minimum == 0 ? elapsed : std::min(minimum, elapsed);
    if (elapsed > limit) break;
  } while (seconds_since(begin) < seconds);
  return minimum;
}

// Captures `count` calls; empty if the call cannot be captured. Nothing is executed on the stream.
std::optional<cuda::Graph> graph_of(cuda::OwnedStream const& stream, std::function<void(Stream)> const& call,
                                    int count) {
  try {
    cuda::Capture capture(stream);
    for (int i = 0; i < count; ++i) call(stream);
    return capture.finish();
  } catch (Error const& error) {
    if (error.code() != ErrorCode::system) throw;
    return std::nullopt;
  }
}

// Times short calls in groups of about a millisecond, as graphs: called one at a time, they would all take
// the time that the host needs to enqueue them.
double measure_on_gpu(int ordinal, std::function<void(Stream)> const& call, double seconds, double limit) {
  constexpr double wanted_sample = 1e-3;
  constexpr std::size_t max_samples = 1000;
  cuda::Event before(ordinal), after(ordinal);
  auto const seconds_of_all = [&](std::function<void()> const& enqueue) {
    before.record(nullptr);
    enqueue();
    after.record(nullptr);
    after.wait();
    return after.seconds_since(before);
  };
  double const first = seconds_of_all([&] { call(nullptr); });
  if (first > limit) return first;
  int const group =
      static_cast<int>(std::clamp(std::ceil(wanted_sample / std::max(first, 1e-7)), 1.0, 100.0));
  cuda::OwnedStream const stream(ordinal);
  auto const graph = graph_of(stream, call, group);
  auto const sample = [&] {
    return seconds_of_all([&] {
             if (graph) return graph->launch(nullptr);
             for (int i = 0; i < group; ++i) call(nullptr);
           }) /
           group;
  };
  (void)sample();  // the first launch uploads the graph to the device
  std::vector<double> samples;
  auto const begin = Clock::now();
  do samples.push_back(sample());
  while (seconds_since(begin) < seconds && samples.size() < max_samples);
  auto const middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace

void* MeasuredData::allocate(std::size_t bytes) { return memory_.emplace_back(device_, bytes).data(); }

void* MeasuredData::tensor(std::string_view name, TensorDescription const& description) {
  auto const bytes = static_cast<std::size_t>(checked_bytes(description));
  void* const data = allocate(bytes);
  auto const numbers = pattern(name, description.type, bytes);
  memory_.back().upload(numbers.data(), bytes);
  return data;
}

void* MeasuredData::array(std::string_view name, TensorDescription const& matrix, Index matrices) {
  std::vector<void*> addresses;
  for (Index i = 0; i < matrices; ++i) addresses.push_back(tensor(name, matrix));
  std::size_t const bytes = addresses.size() * sizeof(void*);
  void* const data = allocate(bytes);
  memory_.back().upload(addresses.data(), bytes);
  return data;
}

void* MeasuredData::workspace(std::size_t bytes) { return allocate(bytes); }

double measure(Device const& device, std::function<void(Stream)> const& call, double seconds, double limit) {
  call(nullptr);  // warms up caches and lazy allocations
  if (device.backend != Backend::cuda) return measure_on_host([&call] { call(nullptr); }, seconds, limit);
  return measure_on_gpu(device.gpu.ordinal, call, seconds, limit);
}

}  // namespace cosmati::plan
