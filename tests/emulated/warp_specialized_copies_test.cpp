// Operands that TMA does not support as stored, copied by the producer's threads: runs of 8 and 4 bytes,
// single elements, both directions, one operand or both; and the fence that they require.
#include <algorithm>
#include <bit>
#include <vector>

#include "tests/emulated/testing.h"
#include "tests/emulated/warp_specialized_case.h"

namespace cosmati {
namespace emulated {
namespace {

constexpr Along outer = Along::mn, depth = Along::k;

template <WarpgroupTiles tiles, class SourceA, class SourceB, class Destination = TensorDestination<float>>
struct Copied {
  using Traits = WarpSpecializedTraits<policy_of<typename SourceA::Element>(tiles), SourceA, SourceB, float,
                                       IdentityEpilogue<float>, Destination>;
  using Case = WarpSpecializedCase<Traits, typename SourceA::Element, SourceA::along,
                                   typename SourceB::Element, SourceB::along>;
  static void expect_product(Size const& size, WarpgroupSetting const& setting = {}) {
    Case product(size, setting);
    product.launch();
    product.expect([](double sum, int, int) { return sum; });
  }
};

constexpr WarpgroupTiles four{.stages = 4};

TEST(CopiedOperands, OneByThreadsTheOtherByTheEngine) {
  using Runs = Copied<four, StridedSource<bf16, depth, 4>, TensorSource<bf16, outer>>;
  Runs::expect_product({70, 40, 330}, {.batch = 2});
  Runs::expect_product({3, 4, 3}, {.clusters = 3});
  Copied<WarpgroupTiles{.block_m = 128, .stages = 3, .partition = Partition::split_k},
         TensorSource<bf16, depth>, StridedSource<bf16, outer, 2>>::expect_product({130, 44, 200},
                                                                                   {.splits = 2});
}

TEST(CopiedOperands, BothByThreads) {
  // 32-bit elements, A through registers; ping-pong warpgroups, more stages than steps.
  Copied<WarpgroupTiles{.stages = 6, .ping_pong = true}, StridedSource<tf32, outer, 1>,
         StridedSource<tf32, depth, 1>>::expect_product({190, 36, 100});
  Copied<WarpgroupTiles{.block_n = 64, .warp_n = 64, .cluster_k = 2}, StridedSource<e4m3, depth, 4>,
         StridedSource<e4m3, depth, 1>>::expect_product({70, 68, 300});
}

TEST(CopiedOperands, AlignedToElementsOnly) {
  using Elements = Copied<four, StridedSource<f16, outer, 1>, StridedSource<f16, depth, 1>>;
  Elements::expect_product({67, 36, 71});
  Elements::expect_product({1, 4, 130});
}

// Runs at every offset within 16 bytes and of every length, at the very ends of the memory.
struct Nothing {};
template <class Element>
COSMATI_KERNEL(1, 1)
check_shifted_runs(COSMATI_PARAMETER Nothing) {
  constexpr int count = 16 / static_cast<int>(sizeof(Element));
  for (int begin = 0; begin < count; ++begin)
    for (int length = 1; length <= 3 * count; ++length) {
      std::vector<Element> memory(static_cast<std::size_t>(begin + length));
      for (int i = 0; i < begin + length; ++i)
        memory[static_cast<std::size_t>(i)] = convert<Element>(static_cast<double>(i % 7 + 1));
      Element const* const first = memory.data() + begin;
      for (int at = 0; at < length; ++at) {
        int const valid = std::min(count, length - at);
        ShiftedRun<Element> run;
        run.load(first + at, 1, valid, {first, first + length});
        auto const value = std::bit_cast<Vector<Element, count>>(run.value(first + at, 1, valid));
        for (int e = 0; e < count; ++e)
          ASSERT_EQ(static_cast<double>(value[e]), e < valid ? (begin + at + e) % 7 + 1 : 0)
              << begin << ' ' << length << ' ' << at << ' ' << e;
      }
    }
}

TEST(CopiedOperands, RunsAreShifted) {
  emulator::launch_kernel<check_shifted_runs<f16>>({1}, 1, 0, Nothing{});
  emulator::launch_kernel<check_shifted_runs<e4m3>>({1}, 1, 0, Nothing{});
}

// Planted errors: the producer's last warp omits the fence between its copies and the tensor cores, or it
// overwrites a stage that is still being multiplied.
enum class Mistake { no_fence, too_early };
template <Mistake>
struct Forgetful : Copied<four, StridedSource<bf16, depth, 4>, TensorSource<bf16, depth>>::Traits {};

}  // namespace
}  // namespace emulated

template <emulated::Mistake mistake>
struct CopyingProducer<WarpSpecializedRoles<emulated::Forgetful<mistake>>> {
  static void produce(auto& shared, auto const& params) {
    using Traits = emulated::Forgetful<mistake>;
    int const thread = arch::thread() % 128;
    int turn = 0;
    TileCopier<typename Traits::SourceA, typename Traits::TileA, 128> const copier(params.a, 0, 0, params.m,
                                                                                   params.k, thread);
    if (thread == 0) {
      arch::arrive_expecting(shared.full[0], static_cast<int>(sizeof(typename Traits::TileB)));
      shared.b[0].copy(MatrixBoxes<TensorArguments>{params.b, params.b.map, 0, 0, {{0}}}, shared.full[0], 0,
                       1);
    }
    copier.copy(shared.a[0], 0);
    arch::commit_copies();
    arch::wait_copies<0>();
    if (mistake != emulated::Mistake::no_fence || thread < 96) arch::publish_to_async();
    arch::warp_barrier();
    if (thread % 32 == 0) arch::arrive(shared.full[0]);
    if (mistake != emulated::Mistake::too_early) return;
    arch::wait(shared.full[0], 0);
    emulator::wait(
        "a moment", [](void* count) { return ++*static_cast<int*>(count) > 1; }, &turn);
    copier.copy(shared.a[0], 64);
    arch::wait_copies<0>();
  }
};

namespace emulated {
namespace {

template <Mistake mistake>
std::string report() {
  WarpSpecializedCase<Forgetful<mistake>, bf16, depth, bf16, depth> product({64, 32, 64}, {});
  return testing::report_of([&] { product.launch(); });
}

TEST(CopiedOperands, MistakesAreNamed) {
  EXPECT_SAYS(report<Mistake::too_early>(), "which products of warpgroup 0 read; no thread waited for them");
  EXPECT_SAYS(report<Mistake::no_fence>(),
              "of shared memory, which thread 224 wrote without a subsequent publish_to_async()");
}

}  // namespace
}  // namespace emulated
}  // namespace cosmati
