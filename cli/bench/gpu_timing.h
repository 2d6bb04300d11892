// Timing of work enqueued on a GPU, by events on its default stream.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "cli/bench/timing.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cli {

// The function being timed: enqueues one call on a stream, with the next set of operands.
struct GpuCall {
  std::function<void(Stream)> enqueue;
  double estimate = 0;                    // seconds per call, as last measured
  std::optional<cuda::Graph> graph = {};  // a graph of several calls, launched instead of single ones
  std::size_t calls_in_graph = 1;

  void forget_graph();
};

class GpuTimer {
 public:
  explicit GpuTimer(int ordinal) : ordinal_(ordinal) {}

  // Enqueues calls back to back for about `seconds`: launches of the call's graph if it has one, otherwise
  // single calls, in groups if they are shorter than 50 us. A sample is the mean over a launch or a group.
  Slice time_slice(GpuCall& call, double seconds);
  // Runs slices of 50 ms until the medians of three consecutive ones agree within 1%; returns false if they
  // do not within three seconds.
  bool warm_up(GpuCall& call);
  // Records calls as a CUDA graph of about a millisecond of work that uses every set of operands equally
  // often. Each set is run once before as a warm-up. Throws Error(system) if the call cannot be captured, and
  // then leaves it without a graph.
  void capture(GpuCall& call, std::size_t sets);
  // Returns the seconds of one call from a few runs, enough to discard calls far slower than `minimum`, the
  // best so far (0: none yet). Calls shorter than a millisecond run as a small graph if possible, since
  // single calls would be limited by the host.
  double rough_seconds(GpuCall& call, double minimum, bool as_graph);
  // Returns the host time of enqueueing one call while the device is idle, as the median of several rounds.
  double host_seconds(GpuCall& call);

 private:
  cuda::Event& event(std::size_t index);
  cuda::Graph captured(GpuCall& call, std::size_t count);
  double seconds_of_launch(std::function<void()> const& launch);

  int ordinal_;
  std::vector<cuda::Event> events_;
  std::optional<cuda::OwnedStream> stream_;  // calls are captured from it; no work runs on it
};

}  // namespace cosmati::cli
