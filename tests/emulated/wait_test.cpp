// wait(): threads of a block, and blocks of a launch, wait for each other's flags in any order.
#include <atomic>
#include <vector>

#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct Flags {
  std::atomic<int>* flags;
  int* out;
};

void wait_for(std::atomic<int>& flag) {
  emulator::wait(
      "its flag", [](void* context) { return static_cast<std::atomic<int>*>(context)->load() != 0; }, &flag);
}

// Block b waits for block b + 1: with one host thread, all blocks must be running before the first one
// finishes.
template <int blocks>
COSMATI_KERNEL(32, 1)
sum_from_the_last(COSMATI_PARAMETER Flags params) {
  int const block = emulator::block().x;
  if (emulator::thread() == 0 && block + 1 < blocks) wait_for(params.flags[block + 1]);
  emulator::block_barrier();
  if (emulator::thread() != 0) return;
  params.out[block] = block + (block + 1 < blocks ? params.out[block + 1] : 0);
  params.flags[block] = 1;
}

TEST(Wait, BlocksMayWaitForLaterBlocks) {
  constexpr int blocks = 40;
  for (int host_threads : {1, 2, 3, 0}) {
    std::vector<std::atomic<int>> flags(blocks);
    std::vector<int> out(blocks);
    emulator::launch_kernel<sum_from_the_last<blocks>>({blocks}, 32, 0, Flags{flags.data(), out.data()},
                                                       host_threads);
    EXPECT_EQ(out[0], blocks * (blocks - 1) / 2);
  }
}

// Thread t waits for thread t + 1 of its block.
template <int threads>
COSMATI_KERNEL(threads, 1)
count_down(COSMATI_PARAMETER Flags params) {
  int const self = emulator::thread();
  if (self + 1 < threads) wait_for(params.flags[self + 1]);
  params.out[self] = self + 1 < threads ? params.out[self + 1] + 1 : 1;
  params.flags[self] = 1;
}

TEST(Wait, ThreadsMayWaitForLaterThreads) {
  std::vector<std::atomic<int>> flags(64);
  std::vector<int> out(64);
  emulator::launch_kernel<count_down<64>>({1}, 64, 0, Flags{flags.data(), out.data()});
  EXPECT_EQ(out[0], 64);
}

template <int blocks>
COSMATI_KERNEL(32, 1)
wait_in_a_ring(COSMATI_PARAMETER Flags params) {
  int const block = emulator::block().x;
  if (emulator::thread() % 2 == 0) wait_for(params.flags[(block + 1) % blocks]);
  emulator::block_barrier();
  params.flags[block] = 1;
}

TEST(Wait, DeadlockBetweenBlocksIsReported) {
  for (int host_threads : {1, 2, 4}) {
    std::vector<std::atomic<int>> flags(6);
    std::string const report = testing::report_of([&] {
      emulator::launch_kernel<wait_in_a_ring<6>>({6}, 32, 0, Flags{flags.data(), nullptr}, host_threads);
    });
    EXPECT_SAYS(report, "block (0, 0, 0): deadlock: threads 0, 2, 4, 6");
    EXPECT_SAYS(report, "30 wait for its flag; threads 1, 3");
    EXPECT_SAYS(report, "31 wait at the block barrier; block (1, 0, 0): deadlock");
    EXPECT_SAYS(report, "; 2 more blocks wait");
  }
}

}  // namespace
}  // namespace cosmati
