// mbarrier: phases, arrivals of threads and of copies, and the messages about missing arrivals.
#include "cosmati/arch/barrier.h"

#include <vector>

#include "cosmati/arch/memory.h"
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/arch/thread.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct Ring {
  float* out;
  int steps;
  int wrong_parity = 0;
};

struct RingStorage {
  alignas(128) float stage[4][32];
  arch::Barrier full[4], empty[4];
};

// A warp fills a ring of buffers that another warp empties.
template <class Params>
COSMATI_KERNEL(64, 1)
pass_through_ring(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<RingStorage>();
  int const lane = arch::thread() % 32;
  if (arch::thread() == 0) {
    for (int i = 0; i < 4; ++i) {
      arch::init(storage.full[i], 32);
      arch::init(storage.empty[i], 32);
    }
    arch::publish_barriers();
  }
  arch::block_barrier();
  for (int step = 0; step < params.steps; ++step) {
    int const stage = step % 4, parity = step / 4 % 2;
    if (arch::thread() < 32) {
      arch::wait(storage.empty[stage], parity ^ 1);
      storage.stage[stage][lane] = static_cast<float>(step * 100 + lane);
      arch::arrive(storage.full[stage]);
    } else {
      arch::wait(storage.full[stage], parity ^ params.wrong_parity);
      params.out[step * 32 + lane] = storage.stage[stage][31 - lane];
      arch::arrive(storage.empty[stage]);
    }
  }
}

std::vector<float> passed(int steps, int wrong_parity) {
  std::vector<float> out(static_cast<std::size_t>(steps) * 32);
  emulator::launch_kernel<pass_through_ring<Ring>>({1}, 64, sizeof(RingStorage),
                                                   Ring{out.data(), steps, wrong_parity});
  return out;
}

TEST(TransactionBarrier, PassesARingOfBuffersOn) {
  std::vector<float> const out = passed(19, 0);
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], static_cast<float>(i / 32 * 100 + 31 - i % 32));
}

TEST(TransactionBarrier, AWrongPhaseIsAWrongNumberOrAReport) {
  std::string report;
  std::vector<float> out;
  report = testing::report_of([&] { out = passed(19, 1); });
  bool wrong = !report.empty();
  for (std::size_t i = 0; i < out.size(); ++i)
    wrong |= !(out[i] == static_cast<float>(i / 32 * 100 + 31 - i % 32));
  EXPECT_TRUE(wrong);
}

struct Plan {
  int arrivals = 32, arriving = 32, expected = 0, parity = 0;
  bool made = true, overwritten = false;
};

template <class Params>
COSMATI_KERNEL(64, 1)
wait_at_one(COSMATI_PARAMETER Params params) {
  auto& barrier = *reinterpret_cast<arch::Barrier*>(emulator::shared_memory() + 16);
  if (arch::thread() == 0 && params.made) arch::init(barrier, params.arrivals);
  if (arch::thread() == 0 && params.overwritten) barrier.bits = 5;
  arch::block_barrier();
  if (arch::thread() < params.arriving) {
    if (arch::thread() == 0 && params.expected != 0)
      arch::arrive_expecting(barrier, params.expected);
    else
      arch::arrive(barrier);
  }
  if (arch::thread() >= 32) arch::wait(barrier, params.parity);
}

std::string report_on(Plan const& plan) {
  return testing::report_of([&] { emulator::launch_kernel<wait_at_one<Plan>>({1}, 64, 1024, plan); });
}

TEST(TransactionBarrier, ADeadlockNamesWhoWaitsForWhat) {
  EXPECT_EQ(report_on({}), "");
  EXPECT_EQ(
      report_on({.arriving = 31}),
      "block (0, 0, 0): deadlock: threads 0-31 have left the kernel; threads 32-63 wait for parity 0 of the "
      "barrier at byte 16, whose phase 0 is missing 1 of 32 arrivals");
  EXPECT_SAYS(report_on({.expected = 512}),
              "threads 32-63 wait for parity 0 of the barrier at byte 16, whose phase 0 "
              "is missing 512 bytes that no copy delivers");
  EXPECT_SAYS(report_on({.parity = 1}), "");  // the phase before the first one counts as complete
}

TEST(TransactionBarrier, MistakesAreReported) {
  EXPECT_EQ(report_on({.arrivals = 32, .arriving = 33, .expected = 512}),
            "block (0, 0, 0), thread 32 (warp 1, lane 0): arrives at the barrier at byte 16 of shared "
            "memory, though "
            "all 32 arrivals of its phase 0 have been made; it is missing 512 bytes that no copy delivers");
  EXPECT_SAYS(report_on({.made = false}),
              "at a barrier at byte 16 of shared memory, where init() has not created a barrier");
  EXPECT_SAYS(report_on({.overwritten = true}), "where something has overwritten the barrier");
  EXPECT_SAYS(
      report_on({.expected = 1 << 20}),
      "expects 1048576 bytes at the barrier at byte 16 of shared memory; a phase supports at most 1048575");
  EXPECT_SAYS(report_on({.arrivals = 0}), "for 0 arrivals; valid values: 1 to 1048575");
}

struct Copies {
  float* source;
  float* out;
  bool wait = true;
};

// cp.async that arrives on the barrier when it completes.
template <class Params>
COSMATI_KERNEL(64, 1)
copy_and_arrive(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<RingStorage>();
  int const lane = arch::thread() % 32;
  if (arch::thread() == 0) arch::init(storage.full[0], 32);
  arch::block_barrier();
  if (arch::thread() < 32) {
    arch::copy_async<4>(&storage.stage[0][lane], params.source + lane, 4);
    arch::arrive_after_copies(storage.full[0]);
  } else {
    if (params.wait) arch::wait(storage.full[0], 0);
    params.out[lane] = storage.stage[0][31 - lane];
  }
}

TEST(TransactionBarrier, CopiesArriveByThemselves) {
  std::vector<float> source(32), out(32);
  for (std::size_t i = 0; i < 32; ++i) source[i] = static_cast<float>(i);
  emulator::launch_kernel<copy_and_arrive<Copies>>({1}, 64, sizeof(RingStorage),
                                                   Copies{source.data(), out.data()});
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], static_cast<float>(31 - i));
  emulator::launch_kernel<copy_and_arrive<Copies>>({1}, 64, sizeof(RingStorage),
                                                   Copies{source.data(), out.data(), false});
  for (std::size_t i = 0; i < 32; ++i) EXPECT_FALSE(out[i] == out[i]) << i;
}

// TMA reads what cp.async copied: the storing thread issues a fence after the wait.
struct alignas(64) CopiesToStore {
  arch::TensorMap to;
  float* source;
  bool publishes;
};

template <class Params>
COSMATI_KERNEL(64, 1)
copy_and_store(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<RingStorage>();
  int const lane = arch::thread() % 32;
  if (arch::thread() == 0) arch::init(storage.full[0], 32);
  arch::block_barrier();
  if (arch::thread() < 32) {
    arch::copy_async<4>(&storage.stage[0][lane], params.source + lane, 4);
    arch::arrive_after_copies(storage.full[0]);
  } else {
    arch::wait(storage.full[0], 0);
    if (params.publishes) arch::publish_to_async();
    if (lane != 0) return;
    int const at[1] = {0};
    arch::store_tile(params.to, storage.stage[0], at);
    arch::commit_stores();
    arch::wait_stores_read<0>();
  }
}

TEST(TransactionBarrier, CopiesArePublishedByWhoWaits) {
  alignas(16) float source[32], out[32] = {};
  for (int i = 0; i < 32; ++i) source[i] = static_cast<float>(i);
  auto const report = [&](bool publishes) {
    CopiesToStore params{{}, source, publishes};
    params.to = emulator::encode_tensor_map(
        {.address = out, .rank = 1, .element_bytes = 4, .extent = {32}, .stride = {}, .box = {32}});
    return testing::report_of([&] {
      emulator::launch_kernel<copy_and_store<CopiesToStore>>({1}, 64, sizeof(RingStorage), params);
    });
  };
  EXPECT_EQ(report(true), "");
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], source[i]);
  EXPECT_SAYS(report(false), "which a copy (cp.async) wrote without a subsequent publish_to_async()");
}

struct Named {
  int* out;
  int late = 96, id = 3;
};

// Two warps wait for the data of a third one, which continues at once.
template <class Params>
COSMATI_KERNEL(128, 1)
bring_to_named(COSMATI_PARAMETER Params params) {
  auto* const shared = testing::shared<int>();
  int const self = arch::thread();
  if (self < 32) {
    shared[self] = self;
    arch::named_arrive(params.id, 96);
  } else if (self < params.late) {
    arch::named_barrier(params.id, 96);
    params.out[self] = shared[self % 32];
  }
}

TEST(NamedBarrier, ArrivingDoesNotWait) {
  std::vector<int> out(128, -1);
  emulator::launch_kernel<bring_to_named<Named>>({1}, 128, 128, Named{out.data()});
  for (int i = 0; i < 128; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i < 32 || i >= 96 ? -1 : i % 32);
}

TEST(NamedBarrier, ADeadlockSaysHowManyHaveCome) {
  std::vector<int> out(128);
  auto const report = [&](Named const& named) {
    return testing::report_of([&] { emulator::launch_kernel<bring_to_named<Named>>({1}, 128, 128, named); });
  };
  EXPECT_SAYS(report({out.data(), 64}),
              "threads 32-63 wait for named barrier 3, where 64 of 96 threads have arrived");
  EXPECT_SAYS(report({out.data(), 96, 16}), "named barrier 16 of 96 threads; valid values: 1 to 15");
}

}  // namespace
}  // namespace cosmati
