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
  double estimate = 0;                    // last measured seconds per call
  std::optional<cuda::Graph> graph = {};  // a graph of several calls, launched instead of single calls
  std::size_t calls_in_graph = 1;

  void forget_graph();
};

class GpuTimer {
 public:
  explicit GpuTimer(int ordinal) : ordinal_(ordinal) {}

  // Calls for about `seconds`, enqueued one behind the other: launches of the call's graph, if it has one, or
  // single calls, those shorter than 50 us in groups. A sample is the mean over a launch or a group.
  Slice time_slice(GpuCall& call, double seconds);
  // Slices of 50 ms until the medians of three in a row lie within 1%; false if they do not within three
  // seconds.
  bool warm_up(GpuCall& call);
  // Records calls as a CUDA graph: whole turns over the sets of operands, about a millisecond of work. Each
  // set is run once before as a warm-up. Throws Error(system) if the call cannot be captured, and leaves it
  // without a graph.
  void capture(GpuCall& call, std::size_t sets);
  // Seconds of one call, of a few runs: enough to leave out what is far slower than `least`, the best so far
  // (0: there is none). Calls below a millisecond are run as a small graph where that is possible: alone,
  // they all take the host's time.
  double rough_seconds(GpuCall& call, double least, bool as_graph);
  // Seconds of the host for one call: to enqueue it, while the device has nothing else to do. The median of
  // some rounds.
  double host_seconds(GpuCall& call);

 private:
  cuda::Event& event(std::size_t index);
  cuda::Graph captured(GpuCall& call, std::size_t count);
  double seconds_of_launch(std::function<void()> const& launch);

  int ordinal_;
  std::vector<cuda::Event> events_;
  std::optional<cuda::OwnedStream> stream_;  // that calls are captured from; nothing is ever done on it
};

}  // namespace cosmati::cli
