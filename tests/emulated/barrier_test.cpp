// The block barrier: writes before it are visible after it, in every block, on any number of host threads.
#include <vector>

#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct Rotation {
  int* out;  // (block, thread)
  int rounds;
};

// In each round every thread passes its value to the thread on its right through shared memory.
template <int threads>
COSMATI_KERNEL(threads, 1)
rotate(COSMATI_PARAMETER Rotation params) {
  int const self = emulator::thread(), block = emulator::block().x;
  int value = 1000 * block + self;
  for (int round = 0; round < params.rounds; ++round) {
    testing::shared<int>()[self] = value;
    emulator::block_barrier();
    value = testing::shared<int>()[(self + threads - 1) % threads];
    emulator::block_barrier();
  }
  params.out[block * threads + self] = value;
}

void expect_rotated(int host_threads) {
  constexpr int threads = 96, blocks = 7, rounds = 5;
  std::vector<int> out(threads * blocks);
  emulator::launch_kernel<rotate<threads>>({blocks}, threads, threads * sizeof(int),
                                           Rotation{out.data(), rounds}, host_threads);
  for (int block = 0; block < blocks; ++block)
    for (int thread = 0; thread < threads; ++thread)
      ASSERT_EQ(out[static_cast<std::size_t>(block * threads + thread)],
                1000 * block + (thread + threads - rounds) % threads);
}

TEST(Barrier, HandsOnWhatWasWrittenBeforeIt) {
  expect_rotated(1);
  expect_rotated(2);
  expect_rotated(0);
}

// Without barriers the first thread reads memory that nothing has written yet: poison.
template <class T>
COSMATI_KERNEL(32, 1)
read_first(COSMATI_PARAMETER Rotation params) {
  params.out[emulator::thread()] = testing::shared<T>()[31];
  testing::shared<T>()[emulator::thread()] = 7;
}

TEST(Barrier, IsMissedWhereItIsMissing) {
  std::vector<int> out(32);
  for (int launch = 0; launch < 2; ++launch) {  // shared memory is poisoned again for each launch
    emulator::launch_kernel<read_first<int>>({1}, 32, 128, Rotation{out.data(), 0});
    EXPECT_EQ(out[0], -1);
  }
}

// Threads of one block reach the same number of barriers on different paths.
template <int threads>
COSMATI_KERNEL(threads, 1)
take_two_paths(COSMATI_PARAMETER Rotation params) {
  int const self = emulator::thread();
  if (self % 2 == 0) {
    testing::shared<int>()[self] = self;
    emulator::block_barrier();
  } else {
    testing::shared<int>()[self] = -self;
    emulator::block_barrier();
  }
  params.out[self] = testing::shared<int>()[self ^ 1];
}

TEST(Barrier, IsOneForAllPaths) {
  std::vector<int> out(64);
  emulator::launch_kernel<take_two_paths<64>>({1}, 64, 256, Rotation{out.data(), 0});
  for (int thread = 0; thread < 64; ++thread)
    EXPECT_EQ(out[static_cast<std::size_t>(thread)], thread % 2 == 0 ? -(thread + 1) : thread - 1);
}

// In every third round a single thread votes true.
template <int threads>
COSMATI_KERNEL(threads, 1)
ask_all(COSMATI_PARAMETER Rotation params) {
  int const self = emulator::thread();
  for (int round = 0; round < params.rounds; ++round)
    params.out[self * params.rounds + round] = emulator::block_any(round % 3 == 0 && self == round);
}

TEST(Barrier, TellsAllWhetherOneSaysTrue) {
  std::vector<int> out(40 * 6);
  emulator::launch_kernel<ask_all<40>>({1}, 40, 0, Rotation{out.data(), 6});
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i % 6 % 3 == 0) << i;
}

}  // namespace
}  // namespace cosmati
