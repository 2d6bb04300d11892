// Times work on a GPU by events.
#include "cli/bench/gpu_timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double min_gpu_sample = 50e-6;  // an event costs about a microsecond of the device
constexpr double max_samples = 256;       // in flight: a stream queues about a thousand commands
constexpr double graph_seconds = 1e-3;    // one or two microseconds pass between two graphs
constexpr double max_calls = 512;         // per graph, unless there are more sets of operands

}  // namespace

cuda::Event& GpuTimer::event(std::size_t index) {
  while (events_.size() <= index) events_.emplace_back(ordinal_);
  return events_[index];
}

void GpuCall::forget_graph() {
  if (!graph) return;
  graph.reset();
  calls_in_graph = 1;
  estimate = 0;
}

Slice GpuTimer::time_slice(GpuCall& call, double seconds) {
  Slice slice;
  auto const calls = static_cast<double>(call.calls_in_graph);
  for (double elapsed = 0; elapsed < seconds || slice.samples.empty();) {
    double const estimate = call.estimate * calls;
    double const in_group = estimate > 0 ? std::clamp(std::ceil(min_gpu_sample / estimate), 1.0, 100.0) : 1.0;
    double const wanted = estimate > 0 ? (seconds - elapsed) / (estimate * in_group) : 1.0;
    auto const count = static_cast<std::size_t>(std::clamp(std::round(wanted), 1.0, max_samples / in_group));
    event(0).record(nullptr);
    for (std::size_t i = 1; i <= count; ++i) {
      for (double j = 0; j < in_group; ++j)
        if (call.graph)
          call.graph->launch(nullptr);
        else
          call.enqueue(nullptr);
      event(i).record(nullptr);
    }
    event(count).wait();
    std::vector<double> samples;
    for (std::size_t i = 1; i <= count; ++i)
      samples.push_back(event(i).seconds_since(event(i - 1)) / (in_group * calls));
    elapsed += event(count).seconds_since(event(0));
    call.estimate = quantile(samples, 0.5);
    slice.samples.insert(slice.samples.end(), samples.begin(), samples.end());
  }
  slice.minimum = *std::min_element(slice.samples.begin(), slice.samples.end());
  return slice;
}

cuda::Graph GpuTimer::captured(GpuCall& call, std::size_t count) {
  if (!stream_) stream_.emplace(ordinal_);
  cuda::Capture capture(*stream_);
  for (std::size_t i = 0; i < count; ++i) call.enqueue(*stream_);
  return capture.finish();
}

void GpuTimer::capture(GpuCall& call, std::size_t sets) {
  call.forget_graph();
  for (std::size_t i = 0; i < sets; ++i) call.enqueue(nullptr);
  cuda::wait(ordinal_, nullptr);
  (void)time_slice(call, 0);
  auto const calls = static_cast<double>(sets);
  double const turns =
      std::clamp(std::ceil(graph_seconds / (call.estimate * calls)), 1.0, std::max(1.0, max_calls / calls));
  auto const count = sets * static_cast<std::size_t>(turns);
  call.graph = captured(call, count);
  call.calls_in_graph = count;
  // The first launch uploads the graph to the device.
  (void)time_slice(call, 0);
  (void)time_slice(call, 0);
}

double GpuTimer::seconds_of_launch(std::function<void()> const& launch) {
  event(0).record(nullptr);
  launch();
  event(1).record(nullptr);
  event(1).wait();
  return event(1).seconds_since(event(0));
}

double GpuTimer::rough_seconds(GpuCall& call, double minimum, bool as_graph) {
  constexpr double long_enough = 1e-3, worth_a_graph = 3, of_the_host = 20e-6, wanted = 100e-6;
  auto const single = [&] { call.enqueue(nullptr); };
  (void)seconds_of_launch(single);
  double const alone = seconds_of_launch(single);
  bool const is_far_behind = minimum > 0 && alone > worth_a_graph * minimum + of_the_host;
  if (!as_graph || alone > long_enough || is_far_behind) return alone;
  try {
    double const count = std::clamp(std::ceil(wanted / alone), 1.0, 16.0);
    cuda::Graph const graph = captured(call, static_cast<std::size_t>(count));
    auto const launch = [&] { graph.launch(nullptr); };
    (void)seconds_of_launch(launch);
    return std::min(seconds_of_launch(launch), seconds_of_launch(launch)) / count;
  } catch (Error const& error) {
    if (error.code() != ErrorCode::system) throw;
    return alone;
  }
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
  constexpr int max_rounds = 20, calls = 16;
  std::vector<double> rounds;
  auto const begin = Clock::now();
  for (int round = 0; round < max_rounds && (round < 3 || seconds_since(begin) < 0.2); ++round) {
    cuda::wait(ordinal_, nullptr);
    auto const start = Clock::now();
    for (int i = 0; i < calls; ++i) call.enqueue(nullptr);
    rounds.push_back(seconds_since(start) / calls);
  }
  cuda::wait(ordinal_, nullptr);
  return quantile(rounds, 0.5);
}

}  // namespace cosmati::cli
