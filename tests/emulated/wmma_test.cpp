// WMMA in the emulator: the arithmetic of one instruction, and planted errors, which are reported with the
// thread that made them.
#include "cosmati/arch/wmma.h"

#include "cosmati/arch/thread.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

// d = a * b by one instruction, with a, b and d in shared memory and the default layouts of a and b.
struct Fragments {
  float* d = nullptr;  // (m, n)
  int move = 0;        // offset in bytes of a wrong address of A
  int lane_moves = 0;  // the same for lane 7
  int store_move = 0;
  bool diverges = false;
};

constexpr int line = 24;  // f16 elements: 48 bytes

template <int stride, bool by_depth, bool as_loaded, class Params>
COSMATI_KERNEL(32, 1)
multiply_fragments(COSMATI_PARAMETER Params params) {
  struct Storage {
    f16 a[16 * line], b[16 * line];
    float d[16 * line];
  };
  auto& storage = arch::shared_storage<Storage>();
  int const lane = arch::thread();
  for (int i = lane; i < 16 * line; i += 32) {
    storage.a[i] = f16(static_cast<double>(i % 7 - 3));
    storage.b[i] = f16(static_cast<double>(i % 5 - 2));
  }
  arch::warp_barrier();
  if (params.diverges && lane == 7) return;
  arch::WmmaOperand<f16> a, b;
  arch::WmmaSums<float> d;
  auto const* const from = reinterpret_cast<unsigned char*>(storage.a) + params.move;
  arch::load_wmma<true, by_depth, stride>(a, from + (lane == 7 ? params.lane_moves : 0));
  arch::load_wmma<false, by_depth, line>(b, storage.b);
  arch::multiply_wmma<f16, by_depth == as_loaded, by_depth>(d, a, b);
  arch::store_wmma<f16, line>(storage.d + params.store_move, d);
  arch::warp_barrier();
  for (int i = lane; i < 256; i += 32) params.d[i] = storage.d[i / 16 * line + i % 16];
}
constexpr unsigned shared_bytes = 16 * line * 8;

template <int stride = line, bool by_depth = true, bool as_loaded = true>
std::string report_of(Fragments fragments) {
  std::vector<float> d(256);
  fragments.d = d.data();
  return testing::report_of([&] {
    emulator::launch_kernel<multiply_fragments<stride, by_depth, as_loaded, Fragments>>({1}, 32, shared_bytes,
                                                                                        fragments);
  });
}

template <bool by_depth, bool as_loaded>
int wrong_sums() {
  std::vector<float> d(256);
  emulator::launch_kernel<multiply_fragments<line, by_depth, as_loaded, Fragments>>({1}, 32, shared_bytes,
                                                                                    Fragments{d.data()});
  int wrong = 0;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) {
        int const a = by_depth ? m * line + k : k * line + m, b = by_depth ? n * line + k : k * line + n;
        sum += static_cast<float>((a % 7 - 3) * (b % 5 - 2));
      }
      wrong += !(d[static_cast<std::size_t>(m * 16 + n)] == sum);
    }
  return wrong;
}

TEST(Wmma, MultipliesAlongBothDirections) {
  EXPECT_EQ((wrong_sums<true, true>()), 0);
  EXPECT_EQ((wrong_sums<false, true>()), 0);
}

TEST(Wmma, AnotherDirectionThanLoadedIsWrong) {
  EXPECT_GT((wrong_sums<true, false>()), 0);
  EXPECT_GT((wrong_sums<false, false>()), 0);
}

TEST(Wmma, MistakesAreNamed) {
  EXPECT_EQ(report_of({}), "");
  EXPECT_EQ(report_of({.move = 16}),
            "block (0, 0, 0), thread 31 (warp 0, lane 31): wmma.load.a of a matrix at byte 16 of shared "
            "memory, not a multiple of 32");
  EXPECT_EQ(report_of<20>({}),
            "block (0, 0, 0), thread 31 (warp 0, lane 31): wmma.load.a with a leading dimension of 40 "
            "bytes, not a multiple of 16; nearest: 48");
  EXPECT_SAYS(report_of<8>({}), "with a leading dimension of 16 bytes, less than the 32 of a line");
  EXPECT_SAYS(report_of({.move = 2560}),
              "wmma.load.a of bytes 2560 to 3311 of shared memory, which has 3072");
  EXPECT_SAYS(report_of({.move = 1 << 30}), "wmma.load.a of a matrix that is not in shared memory");
  EXPECT_SAYS(report_of({.store_move = 4}),
              "wmma.store.d of a matrix at byte 1552 of shared memory, not a multiple");
  EXPECT_SAYS(report_of({.lane_moves = 32}),
              "of a matrix at byte 0 of shared memory, where lane 7 has one at byte 32");
  EXPECT_SAYS(report_of({.diverges = true}), "wmma.load.a with mask 0xffffffff is missing lane 7 (thread 7)");
}

}  // namespace
}  // namespace cosmati
