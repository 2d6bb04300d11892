// Timing what is enqueued on a GPU, by events on its default stream.
#pragma once
#include <functional>
#include <vector>

#include "cli/timing.h"
#include "src/backend/cuda/resources.h"

namespace cosmati::cli {

// What is timed: enqueues one call and returns.
struct GpuCall {
  std::function<void()> enqueue;
  double estimate = 0;  // seconds of one, as they were last
};

class GpuTimer {
 public:
  explicit GpuTimer(int ordinal) : ordinal_(ordinal) {}

  // Calls for about `seconds`, enqueued one behind the other; calls shorter than 50 us are timed in groups.
  Slice time_slice(GpuCall& call, double seconds);
  // Slices of 50 ms until the medians of three in a row lie within 1%; false if they do not within three
  // seconds.
  bool warm_up(GpuCall& call);
  // Seconds of the host for one call: to enqueue it, while the device has nothing else to do. The median of
  // some rounds.
  double host_seconds(GpuCall& call);

 private:
  cuda::Event& event(std::size_t index);

  int ordinal_;
  std::vector<cuda::Event> events_;
};

}  // namespace cosmati::cli
