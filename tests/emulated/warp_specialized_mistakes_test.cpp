// The emulator's messages about the warp_specialized kernel if one link of its chain is missing or wrong: the
// kernel is the library's, and its roles are rewritten here with one mistake each.
#include "tests/emulated/testing.h"
#include "tests/emulated/warp_specialized_case.h"

namespace cosmati {
namespace emulated {
namespace {

enum class Mistake {
  none,
  no_wait_for_full,
  wrong_parity_of_full,
  no_wait_for_empty,
  wrong_parity_of_empty,
  half_the_bytes,
  no_wait_for_products,
  a_wait_too_few,
  no_wait_at_the_end,
  released_too_early,
  not_released,
  no_fence,
  no_wait_for_store,
  no_turns,
};

constexpr Along depth = Along::k;
using Operands = Warpgroups<bf16, depth, bf16, depth, float>;
template <bool ping_pong>
using Right = Operands::Traits<WarpgroupTiles{.ping_pong = ping_pong}, TensorDestination<float>,
                               IdentityEpilogue<float>>;
template <Mistake mistake_>
struct Mistaken : Right<mistake_ == Mistake::no_turns> {
  static constexpr Mistake mistake = mistake_;
};

template <class Traits>
struct MistakenRoles {
  static constexpr Mistake mistake = Traits::mistake;
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr int steps_in_flight = mistake == Mistake::a_wait_too_few ? 1 : 0;
  using Shared = typename Traits::SharedStorage;
  using Params = typename Traits::Params;
  using Scheduler = TileScheduler<policy>;

  static Scheduler scheduler(Params const& params) {
    return WarpSpecializedRoles<Right<policy.ping_pong>>::scheduler(params);
  }

  static void produce(Shared& shared, Params const& params) {
    RingPlace<policy.stages> ring;
    for (Scheduler tiles = scheduler(params); tiles.more(); tiles.advance()) {
      TileOfWork const work = tiles.work();
      for (int step = 0; step < work.steps.last; ++step, ring.advance()) {
        int const parity = mistake == Mistake::wrong_parity_of_empty ? ring.parity : ring.parity ^ 1;
        if (mistake != Mistake::no_wait_for_empty) arch::wait(shared.empty[ring.stage], parity);
        arch::Barrier& full = shared.full[ring.stage];
        int const bytes = loaded_bytes<typename Traits::SourceA, typename Traits::TileA>(params.m) +
                          loaded_bytes<typename Traits::SourceB, typename Traits::TileB>(params.n);
        arch::arrive_expecting(full, bytes / (mistake == Mistake::half_the_bytes ? 2 : 1));
        int const first_k = step * policy.block_k;
        shared.a[ring.stage].copy(
            MatrixBoxes<TensorArguments>{
                params.a, params.a.map, work.tile.m * policy.block_m, first_k, {{0}}},
            full, 0, 0);
        shared.b[ring.stage].copy(
            MatrixBoxes<TensorArguments>{
                params.b, params.b.map, work.tile.n * policy.block_n, first_k, {{0}}},
            full, 0, 0);
      }
    }
  }

  static void consume(Shared& shared, Params const& params, int group) {
    typename Traits::Operands const operands(shared.a[0], shared.b[0], group);
    typename Traits::Fragments fragments;
    RingPlace<policy.stages> ring;
    int turn = 0;
    for (Scheduler tiles = scheduler(params); tiles.more(); tiles.advance(), ++turn) {
      TileOfWork const work = tiles.work();
      if (policy.ping_pong && turn % 2 != group) {  // no warpgroup waits for its turn
        ring.advance(work.steps.last);
        continue;
      }
      typename Traits::Product sums;
      for (int step = 0; step < work.steps.last; ++step, ring.advance()) {
        int const parity = mistake == Mistake::wrong_parity_of_full ? ring.parity ^ 1 : ring.parity;
        if (mistake != Mistake::no_wait_for_full) arch::wait(shared.full[ring.stage], parity);
        operands.multiply(sums, fragments, ring.stage, step > 0);
        if (mistake == Mistake::no_wait_at_the_end && tiles.is_last() && step + 1 == work.steps.last) break;
        if (mistake == Mistake::released_too_early) release(shared.empty[ring.stage]);
        if (mistake != Mistake::no_wait_for_products) arch::warpgroup_wait<steps_in_flight>();
        if (mistake != Mistake::released_too_early && mistake != Mistake::not_released)
          release(shared.empty[ring.stage]);
      }
      sums.fence_registers();
      store(sums, shared, params, work.tile.m * policy.block_m, work.tile.n * policy.block_n);
    }
    if (mistake != Mistake::no_wait_for_store && arch::thread() % 32 == 0) arch::wait_stores_read<0>();
  }

 private:
  static void release(arch::Barrier& empty) {
    arch::warp_barrier();
    if (arch::thread() % 32 == 0) arch::arrive(empty);
  }

  // Stores a warp's 16 rows by 32 columns.
  static void store(typename Traits::Product const& sums, Shared& shared, Params const& params, int m,
                    int n) {
    int const warp = arch::thread() / 32, lane = arch::thread() % 32;
    unsigned char* const buffer = shared.epilogue.bytes[warp][0];
    if (lane == 0 && mistake != Mistake::no_wait_for_store) arch::wait_stores_read<0>();
    arch::warp_barrier();
    for (int i = 0; i < policy.thread_m; ++i)
      for (int j = 0; j < policy.thread_n; ++j) {
        int const row = lane / 4 + 8 * i, column = j / 2 * 8 + lane % 4 * 2 + j % 2;
        arch::store(buffer + tile_offset(row, column * 4, tensor_store_rows, Swizzle::bytes128),
                    sums.get(i, j));
      }
    if (mistake != Mistake::no_fence) arch::publish_to_async();
    arch::warp_barrier();
    if (lane != 0) return;
    int const to[3] = {n, m + warp % 4 * 16, 0};
    arch::store_tile<3>(params.d.map, buffer, to);
    arch::commit_stores();
  }
};

}  // namespace
}  // namespace emulated

template <emulated::Mistake mistake>
struct WarpSpecializedRoles<emulated::Mistaken<mistake>>
    : emulated::MistakenRoles<emulated::Mistaken<mistake>> {};

namespace emulated {
namespace {

constexpr Size size{100, 44, 300};  // 2 by 2 tiles with 5 steps

double sum_itself(double sum, int, int) { return sum; }

template <Mistake mistake>
std::string report() {
  using Traits = Mistaken<mistake>;
  Operands::Case<Traits> product(size, {});
  std::string const said = testing::report_of([&] { product.launch(); });
  if (said.empty()) product.expect(sum_itself);
  return said;
}

TEST(WarpSpecializedMistakes, NoneIsRight) { EXPECT_EQ(report<Mistake::none>(), ""); }

TEST(WarpSpecializedMistakes, Waits) {
  EXPECT_SAYS(report<Mistake::no_wait_for_full>(),
              "wgmma: A holds byte 0 of shared memory, to which nothing has been written or copied");
  EXPECT_SAYS(report<Mistake::no_wait_for_empty>(),
              "A holds byte 0 of shared memory, to which a box is being copied; no thread waited for it");
  std::string const early =
      "copies a box over byte 0 of shared memory, which products of warpgroup 0 of "
      "block (0, 0, 0) read; no thread waited for them (warpgroup_wait())";
  EXPECT_SAYS(report<Mistake::no_wait_for_products>(), early);
  EXPECT_SAYS(report<Mistake::released_too_early>(), early);
  EXPECT_SAYS(report<Mistake::a_wait_too_few>(), early);
  EXPECT_SAYS(report<Mistake::no_wait_at_the_end>(),
              "ends with 4 products of warpgroup 0 in flight; no thread waited for them");
  EXPECT_SAYS(
      report<Mistake::no_wait_for_store>(),
      "ends while a box stored by thread 0 is still being read from byte 24576 of shared memory; the thread did "
      "not wait (wait_stores_read())");
}

TEST(WarpSpecializedMistakes, PhasesAndArrivals) {
  EXPECT_SAYS(report<Mistake::wrong_parity_of_full>(),
              "wgmma: A holds byte 0 of shared memory, to which nothing has been written or copied");
  // Both warpgroups reach a stage, one of them a round too early.
  EXPECT_SAYS(report<Mistake::no_turns>(),
              "copies a box over byte 8192 of shared memory, which products of warpgroup 1 of");
  std::string const consumers = "deadlock: threads 0-127 wait for parity ",
                    producer = "; thread 128 waits for parity 0 of the barrier at byte ";
  auto const expect_deadlock = [&](std::string const& said, std::string const& what) {
    for (std::string const& part : {consumers, producer, what}) EXPECT_SAYS(said, part);
  };
  std::string const nobody_released = ", whose phase 0 is missing 4 of 4 arrivals; threads 129-255 have left";
  expect_deadlock(report<Mistake::wrong_parity_of_empty>(), nobody_released);
  expect_deadlock(report<Mistake::not_released>(), nobody_released);
  expect_deadlock(report<Mistake::half_the_bytes>(),
                  ", whose phase 0 is missing an arrive_expecting() for 6144 bytes that copies deliver; ");
}

TEST(WarpSpecializedMistakes, Fence) {
  EXPECT_SAYS(
      report<Mistake::no_fence>(),
      "stores a box that holds byte 24576 of shared memory, which thread 0 wrote without a subsequent "
      "publish_to_async()");
}

// Tensor maps with other boxes or swizzles than the tiles have.
TEST(WarpSpecializedMistakes, TensorMaps) {
  using Traits = Right<false>;
  auto const report_with = [](auto const& change) {
    Operands::Case<Traits> product(size, {});
    change(product.parameters);
    return testing::report_of([&] { product.launch(); });
  };
  auto const other_swizzle = [](arch::TensorMap& map, Swizzle swizzle) {
    map.word[0] = (map.word[0] & ~0xffULL) | static_cast<unsigned long long>(swizzle);
  };
  EXPECT_SAYS(report_with([&](auto& params) { other_swizzle(params.a.map, Swizzle::none); }),
              "wgmma: A at byte 0 of shared memory is read with a swizzle of 128 bytes, but was copied "
              "without swizzle");
  EXPECT_SAYS(report_with([&](auto& params) { other_swizzle(params.b.map, Swizzle::bytes64); }),
              "wgmma: B at byte 16384 of shared memory is read with a swizzle of 128 bytes, but was copied "
              "with a swizzle of 64 bytes");
  auto const half_a_box = [](auto& params) { params.a.map.word[12] = 32; };
  EXPECT_SAYS(report_with(half_a_box), "whose phase 0 is missing 4096 bytes that no copy delivers");
}

}  // namespace
}  // namespace emulated
}  // namespace cosmati
