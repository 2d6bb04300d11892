// Stream-K: equal ranges of steps for all blocks, in every kernel that supports it, and the messages about
// mistakes.
#include "tests/emulated/testing.h"
#include "tests/emulated/warp_specialized_case.h"

namespace cosmati::emulated {
namespace {

constexpr Along outer = Along::mn, depth = Along::k;
constexpr EpilogueSchedule staged = EpilogueSchedule::staged;

constexpr GemmPolicy streaming(GemmPolicy policy) {
  policy.partition = Partition::stream_k;
  return policy;
}
constexpr GemmPolicy mma_policy = [] {
  GemmPolicy policy = small_policy(MainLoop::multistage, Multiply::mma);
  policy.block_k = 32;
  policy.warp_m = 32, policy.warp_n = 16;
  policy.epilogue = staged;
  return policy;
}();
using Mma = PlainGemm<streaming(mma_policy), f16, float, depth, outer, 8>;
using Simt = PlainGemm<streaming(small_policy(MainLoop::multistage)), float, float, outer, depth, 4>;
using Buffered = PlainGemm<streaming(small_policy(MainLoop::double_buffered)), f64, f64, depth, depth, 2>;

// Tiles of 32 x 32; steps of 32 (f16) or 8 (f32, f64).
template <class Traits>
void expect_all(int step) {
  expect_product<Traits>({40, 90, 3 * step}, {.blocks = 4});  // 6 tiles for 4 blocks: two waves
  expect_product<Traits>({40, 90, 3 * step},
                         {.blocks = 4, .streamed = 2});           // one of the two waves is streamed
  expect_product<Traits>({20, 60, 5 * step - 3}, {.blocks = 7});  // one tile spans three blocks or more
  expect_product<Traits>({33, 70, 4 * step}, {.batch = 2, .blocks = 5});
  expect_product<Traits>({40, 40, 2 * step}, {.blocks = 1, .streamed = 3});  // a single block
  expect_product<Traits>({20, 20, 2 * step}, {.blocks = 5});                 // more blocks than steps
  expect_product<Traits>({40, 40, 0}, {.blocks = 3});
  expect_product<Traits>({64, 64, step}, {.blocks = 4});  // full waves: nothing is streamed
}

TEST(StreamK, TensorCores) { expect_all<Mma>(32); }
TEST(StreamK, Multistage) { expect_all<Simt>(8); }
TEST(StreamK, DoubleBuffered) { expect_product<Buffered>({40, 90, 50}, {.blocks = 4}); }

using Bf16 = Warpgroups<bf16, depth, bf16, outer, float>;
using Engine = TensorDestination<bf16>;

TEST(StreamK, WarpSpecialized) {
  // Tiles of 64 x 32, steps of 64.
  constexpr WarpgroupTiles one{.partition = Partition::stream_k};
  Bf16::expect_product<one, Engine>({150, 56, 200}, {.clusters = 4});  // 6 tiles of 4 steps
  Bf16::expect_product<one, Engine>({150, 56, 200},
                                    {.clusters = 4, .streamed = 2});  // followed by full tiles
  Bf16::expect_product<one, Engine>({50, 24, 500}, {.clusters = 5});  // one tile shared by all clusters
  Bf16::expect_product<one, Engine>({50, 56, 70}, {.clusters = 7});   // more clusters than steps
  Bf16::expect_product<one, Engine>({50, 56, 0}, {.clusters = 3});
  Bf16::expect_product<one, Engine>({100, 24, 130}, {.batch = 3, .clusters = 4});
  Bf16::expect_product<one, Engine>({100, 24, 130}, {.clusters = 1, .streamed = 2});
}

TEST(StreamK, WarpgroupsInTurn) {
  constexpr WarpgroupTiles in_turn{.ping_pong = true, .partition = Partition::stream_k, .epilogue = staged};
  using Rows = StridedDestination<bf16, 8>;
  Bf16::expect_product<in_turn, Rows>({150, 56, 200}, {.clusters = 4});
  Bf16::expect_product<in_turn, Rows>({190, 56, 70}, {.batch = 2, .clusters = 5, .streamed = 8});
  Bf16::expect_product<in_turn, Rows>({50, 24, 500}, {.clusters = 4});
}

TEST(StreamK, Clusters) {
  // A range belongs to a cluster: 3 tiles of 2 blocks, one of which lies outside D.
  using Deep = Warpgroups<s8, depth, s8, depth, s32>;
  constexpr WarpgroupTiles pairs{.cluster_m = 2, .partition = Partition::stream_k};
  Deep::expect_product<pairs, TensorDestination<s32>>({180, 60, 500}, {.clusters = 3});
  Deep::expect_product<pairs, TensorDestination<s32>>({180, 60, 500}, {.clusters = 2, .streamed = 1});
}

// Inexact sums have the same bits, whichever block finishes first.
TEST(StreamK, ResultsHaveTheSameBitsInEveryRun) {
  constexpr int m = 40, n = 88, k = 100, blocks = 5;
  alignas(16) static float a[m * k], b[n * k], d[m * n];
  std::vector<float> first;
  for (int i = 0; i < m * k; ++i) a[i] = 1.0f / static_cast<float>(i % 97 + 3);
  for (int i = 0; i < n * k; ++i) b[i] = 1.0f / static_cast<float>(i % 89 + 7);
  Slots<float> slots(blocks, Simt::Product::registers * Simt::threads);
  for (int host_threads : {1, 2, 4, 3}) {
    Simt::Params params;
    params.m = m, params.n = n, params.k = k;
    params.a = {a, nullptr, 1, m, 0}, params.b = {b, nullptr, k, 1, 0};
    params.d = {d, nullptr, n, 1, 0};
    params.schedule.streamed = static_cast<int>(tiles_to_stream(6, blocks));
    slots.fill(params.schedule);
    emulator::launch_kernel<&gemm_kernel<Simt>>({blocks}, Simt::threads, sizeof(Simt::SharedStorage), params,
                                                host_threads);
    std::vector<float> const result(d, d + m * n);
    if (first.empty()) first = result;
    EXPECT_EQ(result, first) << host_threads << " host threads";
    for (float& value : d) value = -1;
  }
}

// A flag that is never raised, and one that is consumed although it was never raised.
struct SlotKernel {
  ScheduleArguments schedule;
  float* out;
  bool publishes, waits;
};
struct OneSum {
  using Register = float;
  static constexpr int registers = 4;
  float value[4];
  template <class Visit>
  void for_each(Visit&& visit) {
    for (float& each : value) visit(each);
  }
  static void add(float& sum, float more) { sum += more; }
};
template <class Params>
COSMATI_KERNEL(32, 1)
hand_on(COSMATI_PARAMETER Params params) {
  using Partial = PartialSums<OneSum, BlockTeam<32>>;
  OneSum sums{{1, 2, 3, 4}};
  BlockTeam<32> const team;
  if (arch::block_x() > 0) {
    if (params.publishes) Partial::publish(sums, params.schedule, arch::block_x() - 1, team);
    return;
  }
  if (params.waits)
    Partial::add(sums, params.schedule, 0, 2, team);
  else
    Partial::load(sums, params.schedule, 0, 2, team);
  params.out[arch::thread()] = sums.value[arch::thread() % 4];
}

TEST(StreamK, MissingFlagsAndMissingWaitsAreSeen) {
  std::vector<float> out(32);
  auto const report = [&](bool publishes, bool waits) {
    Slots<float> slots(2, OneSum::registers * 32);
    SlotKernel params{{}, out.data(), publishes, waits};
    slots.fill(params.schedule);
    return testing::report_of([&] { emulator::launch_kernel<hand_on<SlotKernel>>({3}, 32, 0, params, 1); });
  };
  EXPECT_EQ(report(true, true), "");
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 3 * static_cast<float>(i % 4 + 1));
  EXPECT_SAYS(report(false, true),
              "block (0, 0, 0): deadlock: threads 0-1 wait for partial sums of another block");
  EXPECT_EQ(report(true, false), "");
  EXPECT_FALSE(out[0] == 3) << "what nobody waited for is not there";
}

}  // namespace
}  // namespace cosmati::emulated
