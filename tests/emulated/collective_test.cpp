// Warp collectives: lanes meet, the last one to arrive computes for all, and masks separate groups.
#include <array>
#include <vector>

#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct Numbers {
  int* out;
};

// Like __shfl_xor_sync.
int shuffle_xor(unsigned mask, int value, int distance) {
  struct Lane {
    int value, distance, result;
  } lane{value, distance, 0};
  emulator::warp_collective("shuffle_xor", mask, &lane, [](void* const* lanes, void*) {
    for (int l = 0; l < 32; ++l)
      if (lanes[l] != nullptr) {
        Lane& self = *static_cast<Lane*>(lanes[l]);
        void* const from = lanes[l ^ self.distance];
        self.result = from != nullptr ? static_cast<Lane*>(from)->value : self.value;
      }
  });
  return lane.result;
}

template <int threads>
COSMATI_KERNEL(threads, 1)
sum_in_warp(COSMATI_PARAMETER Numbers params) {
  int sum = emulator::thread();
  for (int distance = 16; distance > 0; distance /= 2) sum += shuffle_xor(~0U, sum, distance);
  params.out[emulator::thread()] = sum;
}

TEST(Collective, ExchangesValuesWithinAWarp) {
  std::vector<int> out(96);
  emulator::launch_kernel<sum_in_warp<96>>({1}, 96, 0, Numbers{out.data()});
  for (int thread = 0; thread < 96; ++thread)
    EXPECT_EQ(out[static_cast<std::size_t>(thread)], 31 * 16 + 32 * 32 * (thread / 32));
}

// Odd and even lanes form two groups at the same time.
template <int threads>
COSMATI_KERNEL(threads, 1)
sum_by_parity(COSMATI_PARAMETER Numbers params) {
  int const self = emulator::thread();
  unsigned const mask = self % 2 == 0 ? 0x55555555U : 0xaaaaaaaaU;
  int sum = self;
  for (int distance = 16; distance > 1; distance /= 2) sum += shuffle_xor(mask, sum, distance);
  params.out[self] = sum;
}

TEST(Collective, MasksKeepGroupsApart) {
  std::vector<int> out(32);
  emulator::launch_kernel<sum_by_parity<32>>({1}, 32, 0, Numbers{out.data()});
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[static_cast<std::size_t>(lane)], lane % 2 == 0 ? 240 : 256);
}

// Lanes 0 and 1 meet only after lanes 1 and 2 have met, so lane 0 has to wait for both.
template <int threads>
COSMATI_KERNEL(threads, 1)
meet_in_chain(COSMATI_PARAMETER Numbers params) {
  int const lane = emulator::thread();
  int value = lane + 1;
  if (lane == 1 || lane == 2) value += 10 * shuffle_xor(0b110, value, 3);
  if (lane == 0 || lane == 1) value += 100 * shuffle_xor(0b011, value, 1);
  params.out[lane] = value;
}

TEST(Collective, OverlappingMasksMeetOneAfterAnother) {
  std::vector<int> out(3);
  emulator::launch_kernel<meet_in_chain<3>>({1}, 3, 0, Numbers{out.data()});
  EXPECT_EQ(out, (std::vector<int>{1 + 100 * 32, 32 + 100, 23}));
}

template <class T>
COSMATI_KERNEL(32, 1)
see_lanes(COSMATI_PARAMETER Numbers params) {
  if (emulator::thread() % 3 != 0) return;
  T* out = params.out;
  unsigned mask = 0;
  for (int lane = 0; lane < 32; lane += 3) mask |= 1U << lane;
  emulator::warp_collective(
      "see", mask, &out,
      [](void* const* lanes, void* context) {
        for (int lane = 0; lane < 32; ++lane) static_cast<T*>(context)[lane] += lanes[lane] != nullptr;
      },
      out);
}

TEST(Collective, LanesOutsideTheMaskAreNull) {
  std::vector<int> out(32);
  emulator::launch_kernel<see_lanes<int>>({1}, 32, 0, Numbers{out.data()});
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(out[static_cast<std::size_t>(lane)], lane % 3 == 0 ? 1 : 0);
}

}  // namespace
}  // namespace cosmati
