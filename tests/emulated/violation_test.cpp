// Planted errors: each is detected and reported with the thread that made it, on any number of host threads.
#include <stdexcept>

#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

constexpr int threads = 64;
constexpr unsigned shared_bytes = 256;

struct Plant {
  int block = 1, thread = 37;

  bool is_here() const { return emulator::block().y == block && emulator::thread() == thread; }
};

// The message for 2 x 3 blocks; those with y = 1, x = 0 contain the planted thread.
template <auto kernel, class Params>
std::string report_on(Params const& params) {
  std::string first;
  for (int host_threads = 1; host_threads <= 3; ++host_threads) {
    std::string const report = testing::report_of([&] {
      emulator::launch_kernel<kernel>({1, 3}, threads, shared_bytes, params, host_threads);
    });
    if (host_threads == 1) first = report;
    EXPECT_EQ(report, first);
  }
  return first;
}

template <class Params>
COSMATI_KERNEL(threads, 1)
leave_before_barrier(COSMATI_PARAMETER Params params) {
  emulator::block_barrier();
  if (params.is_here()) return;
  emulator::block_barrier();
}

TEST(Violation, ThreadThatLeavesBeforeABarrier) {
  EXPECT_EQ(
      report_on<leave_before_barrier<Plant>>(Plant{}),
      "block (0, 1, 0): not all 64 threads reach the block barrier: threads 0-36, 38-63 wait at the block "
      "barrier; thread 37 has left the kernel");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
mix_barriers(COSMATI_PARAMETER Params params) {
  if (params.is_here())
    emulator::block_any(true);
  else
    emulator::block_barrier();
}

TEST(Violation, BarriersOfTwoKindsDoNotMeet) {
  EXPECT_EQ(
      report_on<mix_barriers<Plant>>(Plant{}),
      "block (0, 1, 0): not all 64 threads reach the block barrier: threads 0-36, 38-63 wait at the block "
      "barrier; thread 37 waits at block_any");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
diverge(COSMATI_PARAMETER Params params) {
  bool const other = emulator::block().y == params.block && emulator::thread() >= 32;
  if (!other) emulator::block_barrier();
  emulator::warp_collective("vote", ~0U, nullptr, nullptr);
  if (other) emulator::block_barrier();
}

TEST(Violation, BarrierAndCollectiveInDifferentOrderAreNoErrorOfTheCollective) {
  // Warp 1 votes first and reaches the barrier afterward: unusual, but legal.
  EXPECT_EQ(report_on<diverge<Plant>>(Plant{}), "");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
leave_before_vote(COSMATI_PARAMETER Params params) {
  if (params.is_here()) return;
  emulator::warp_collective("vote", ~0U, nullptr, nullptr);
}

TEST(Violation, LaneThatLeavesBeforeACollective) {
  EXPECT_EQ(
      report_on<leave_before_vote<Plant>>(Plant{}),
      "block (0, 1, 0): warp 1: vote with mask 0xffffffff is missing lane 5 (thread 37): threads 0-31, 37 have "
      "left the kernel; threads 32-36, 38-63 wait at vote with mask 0xffffffff");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
vote_elsewhere(COSMATI_PARAMETER Params params) {
  emulator::warp_collective(params.is_here() ? "shuffle" : "vote", ~0U, nullptr, nullptr);
}

TEST(Violation, LaneAtAnotherCollective) {
  EXPECT_SAYS(report_on<vote_elsewhere<Plant>>(Plant{}),
              "block (0, 1, 0): warp 1: vote with mask 0xffffffff is missing lane 5 (thread 37): ");
  EXPECT_SAYS(report_on<vote_elsewhere<Plant>>(Plant{}), "; thread 37 waits at shuffle with mask 0xffffffff");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
vote_with_another_mask(COSMATI_PARAMETER Params params) {
  emulator::warp_collective("vote", params.is_here() ? 0xffU : ~0U, nullptr, nullptr);
}

TEST(Violation, LanesWithDifferentMasks) {
  std::string const report = report_on<vote_with_another_mask<Plant>>(Plant{});
  EXPECT_SAYS(report,
              "vote with mask 0xffffffff is missing lane 5 (thread 37): threads 0-31 have left the kernel; ");
  EXPECT_SAYS(report, "; thread 37 waits at vote with mask 0x000000ff");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
vote_without_itself(COSMATI_PARAMETER Params params) {
  if (params.is_here()) emulator::warp_collective("vote", 0xfU, nullptr, nullptr);
}

TEST(Violation, LaneThatItsMaskLeavesOut) {
  EXPECT_EQ(report_on<vote_without_itself<Plant>>(Plant{}),
            "block (0, 1, 0), thread 37 (warp 1, lane 5): vote with mask 0x0000000f, which leaves out lane 5 "
            "itself");
}

TEST(Violation, MaskBeyondTheBlock) {
  EXPECT_EQ(
      testing::report_of([] { emulator::launch_kernel<leave_before_vote<Plant>>({1}, 40, 0, Plant{}); }),
      "block (0, 0, 0), thread 32 (warp 1, lane 0): vote with mask 0xffffffff, but the block ends with lane "
      "7 "
      "of this warp");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
wait_for_ever(COSMATI_PARAMETER Params params) {
  if (params.is_here())
    emulator::wait(
        "a flag", [](void*) { return false; }, nullptr);
  emulator::block_barrier();
}

TEST(Violation, Deadlock) {
  EXPECT_EQ(
      report_on<wait_for_ever<Plant>>(Plant{}),
      "block (0, 1, 0): deadlock: threads 0-36, 38-63 wait at the block barrier; thread 37 waits for a flag");
}

struct Write : Plant {
  int offset = shared_bytes;
};

template <class Params>
COSMATI_KERNEL(threads, 1)
write_to(COSMATI_PARAMETER Params params) {
  emulator::block_barrier();
  if (params.is_here()) emulator::shared_memory()[params.offset] = 1;
  emulator::block_barrier();
}

TEST(Violation, WriteNextToSharedMemory) {
  EXPECT_EQ(
      report_on<write_to<Write>>(Write{{}, 256}),
      "block (0, 1, 0), thread 37 (warp 1, lane 5): wrote outside shared memory: byte 256 has changed; the "
      "launch has 256 bytes");
  EXPECT_SAYS(report_on<write_to<Write>>(Write{{}, -1}),
              "thread 37 (warp 1, lane 5): wrote outside shared memory: "
              "byte -1 has changed");
  EXPECT_EQ(report_on<write_to<Write>>(Write{{}, 255}), "");
}

TEST(Violation, WriteFartherFromSharedMemoryIsSeenAtTheEndOfTheBlock) {
  EXPECT_EQ(report_on<write_to<Write>>(Write{{}, 3000}),
            "block (0, 1, 0): wrote outside shared memory: byte 3000 has changed; the launch has 256 bytes");
  EXPECT_SAYS(report_on<write_to<Write>>(Write{{}, -3000}), "byte -3000 has changed");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
access(COSMATI_PARAMETER Params params) {
  if (params.is_here()) emulator::check_access(emulator::shared_memory() + params.offset, 16);
}

TEST(Violation, AccessThatIsMisalignedOrOutside) {
  EXPECT_EQ(report_on<access<Write>>(Write{{}, 240}), "");
  EXPECT_EQ(report_on<access<Write>>(Write{{}, 36}),
            "block (0, 1, 0), thread 37 (warp 1, lane 5): misaligned access: 16 bytes at byte 36 of "
            "the 256 bytes of shared memory, not a multiple of 16");
  EXPECT_EQ(report_on<access<Write>>(Write{{}, 256}),
            "block (0, 1, 0), thread 37 (warp 1, lane 5): access outside shared memory: 16 bytes at byte 256 "
            "of the "
            "256 bytes of shared memory");
}

template <class Params>
COSMATI_KERNEL(threads, 1)
throw_one(COSMATI_PARAMETER Params params) {
  if (params.is_here()) throw std::out_of_range("no such row");
  emulator::block_barrier();
}

TEST(Violation, ExceptionInTheKernel) {
  EXPECT_EQ(report_on<throw_one<Plant>>(Plant{}), "block (0, 1, 0), thread 37 (warp 1, lane 5): no such row");
  try {
    emulator::launch_kernel<throw_one<Plant>>({1, 3}, threads, 0, Plant{});
    FAIL();
  } catch (std::exception const& error) {  // the kernel's own exception is nested inside
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

}  // namespace
}  // namespace cosmati
