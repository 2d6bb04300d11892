// Timing by CUDA graphs of calls, with the fake driver, whose events are 2.5 ms apart.
#include "cli/bench/gpu_timing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "cosmati/ops/error.h"
#include "tests/cuda/fake_libcuda.h"

namespace cosmati::cli {
namespace {

[[maybe_unused]] int const chosen = setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1);

constexpr std::size_t sets = 3;

class GpuTiming : public ::testing::Test {
 protected:
  void SetUp() override { fake::reset(); }

  // Records which set of operands was used when the work is done.
  GpuCall call() {
    return {[this, next = std::size_t{0}](Stream stream) mutable {
      ++enqueued_;
      std::size_t const set = next;
      next = (next + 1) % sets;
      if (!fake::enqueue(stream, [this, set] { done_.push_back(set); }))
        throw Error(ErrorCode::system, "the fake is not captured");
    }};
  }

  cuda::Current current_{0};
  int enqueued_ = 0;
  std::vector<std::size_t> done_;
};

TEST_F(GpuTiming, LaunchesGraphsOfWholeTurnsOverTheSets) {
  int const handles = fake::handles();
  {
    GpuTimer timer(0);
    GpuCall one = call();
    timer.capture(one, sets);
    ASSERT_TRUE(one.graph.has_value());
    EXPECT_EQ(one.calls_in_graph, sets) << "a turn takes more than a millisecond here";
    done_.clear();
    enqueued_ = 0;
    Slice const slice = timer.time_slice(one, 0);
    EXPECT_EQ(enqueued_, 0) << "the graph is launched instead";
    EXPECT_EQ(done_, (std::vector<std::size_t>{1, 2, 0})) << "one turn, from where the call before stopped";
    ASSERT_EQ(slice.samples.size(), 1U);
    EXPECT_FLOAT_EQ(static_cast<float>(slice.samples[0]), 2.5e-3F / sets)
        << "a sample is the mean of the calls";
    one.forget_graph();
    EXPECT_EQ(one.calls_in_graph, 1U);
    (void)timer.time_slice(one, 0);
    EXPECT_EQ(enqueued_, 1);
  }
  EXPECT_EQ(fake::handles(), handles) << "graph, stream and events are given back";
}

TEST_F(GpuTiming, LeavesACallWithoutAGraphThatCannotBeCaptured) {
  GpuTimer timer(0);
  GpuCall one = call();
  fake::refuse_captures(true);
  EXPECT_THROW(timer.capture(one, sets), Error);
  EXPECT_FALSE(one.graph.has_value());
  EXPECT_EQ(one.calls_in_graph, 1U);
  EXPECT_GT(timer.rough_seconds(one, 0, true), 0) << "single calls do";
  fake::refuse_captures(false);
  fake::fail_next("cuGraphInstantiateWithFlags", 1);
  EXPECT_THROW(timer.capture(one, sets), Error);
  EXPECT_FALSE(one.graph.has_value());
  timer.capture(one, sets);
  EXPECT_TRUE(one.graph.has_value()) << "the stream can be captured again";
}

TEST_F(GpuTiming, MeasuresTheHostByItself) {
  GpuTimer timer(0);
  GpuCall one = call();
  timer.capture(one, sets);
  enqueued_ = 0;
  EXPECT_GT(timer.host_seconds(one), 0);
  EXPECT_GE(enqueued_, 3 * 16) << "single calls, graph or not";
}

}  // namespace
}  // namespace cosmati::cli
