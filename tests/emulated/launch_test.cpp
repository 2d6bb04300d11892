// launch(): every thread of every block once, empty grids, many blocks, many launches, from many host
// threads.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct Count {
  int* out;
  emulator::Grid grid;
};

template <int threads>
COSMATI_KERNEL(threads, 1)
count(COSMATI_PARAMETER Count params) {
  emulator::Grid const at = emulator::block(), grid = emulator::grid();
  EXPECT_EQ(grid.x, params.grid.x);
  EXPECT_EQ(grid.y, params.grid.y);
  EXPECT_EQ(grid.z, params.grid.z);
  EXPECT_EQ(emulator::block_threads(), threads);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(emulator::shared_memory()) % 1024, 0U);
  params.out[((at.z * grid.y + at.y) * grid.x + at.x) * threads + emulator::thread()] += 1;
}

TEST(Launch, RunsEachThreadOnce) {
  emulator::Grid const grid{3, 5, 7};
  for (int host_threads : {0, 1, 2, 5, 1000}) {
    std::vector<int> out(3 * 5 * 7 * 48);
    emulator::launch_kernel<count<48>>(grid, 48, 100, Count{out.data(), grid}, host_threads);
    EXPECT_EQ(out, std::vector<int>(out.size(), 1));
  }
}

TEST(Launch, OfNoBlocksDoesNothing) {
  for (emulator::Grid const grid :
       {emulator::Grid{0, 1, 1}, emulator::Grid{4, 0, 1}, emulator::Grid{4, 4, 0}})
    emulator::launch_kernel<count<48>>(grid, 48, 100, Count{nullptr, grid});
}

TEST(Launch, RefusesWhatNoDeviceRuns) {
  auto const refusal = [](emulator::Grid grid, int threads, int host_threads) {
    return testing::report_of(
        [&] {
          emulator::launch_kernel<count<48>>(grid, threads, 0, Count{nullptr, grid}, host_threads);
        },
        ErrorCode::bad_request);
  };
  EXPECT_SAYS(refusal({1, -1, 1}, 48, 1), "a launch of 1 x -1 x 1 blocks");
  EXPECT_SAYS(refusal({1, 1, 65536}, 48, 1), "a launch of 1 x 1 x 65536 blocks");
  EXPECT_SAYS(refusal({1, 1, 1}, 0, 1), "0 threads per block; valid values: 1 to 1024");
  EXPECT_SAYS(refusal({1, 1, 1}, 1025, 1), "1025 threads per block");
  EXPECT_SAYS(refusal({1, 1, 1}, 48, -1), "-1 host threads");
  EXPECT_SAYS(testing::report_of([] { emulator::block_barrier(); }, ErrorCode::bad_request),
              "outside a kernel");
}

struct Total {
  std::atomic<std::int64_t>* sum;
};

template <int threads>
COSMATI_KERNEL(threads, 1)
add_up(COSMATI_PARAMETER Total params) {
  testing::shared<int>()[emulator::thread()] = emulator::block().x;
  emulator::block_barrier();
  if (emulator::thread() == 0) *params.sum += testing::shared<int>()[threads - 1];
}

TEST(Launch, OfManyBlocksAndManyTimes) {
  std::atomic<std::int64_t> sum = 0;
  emulator::launch_kernel<add_up<32>>({10000}, 32, 128, Total{&sum});
  EXPECT_EQ(sum, 10000 * 9999 / 2);
  for (int launch = 0; launch < 500; ++launch) emulator::launch_kernel<add_up<64>>({4}, 64, 256, Total{&sum});
  EXPECT_EQ(sum, 10000 * 9999 / 2 + 500 * 6);
}

TEST(Launch, FromSeveralThreadsAtOnce) {
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] { emulator::launch_kernel<add_up<1024>>({10}, 1024, 4096, Total{&sum}, 2); });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 45);
}

}  // namespace
}  // namespace cosmati
