// A small hierarchical product, written like a kernel, to test the emulator as a whole.
#include <vector>

#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

// Computes a 128 x 128 tile of A * B with 256 threads, depth_step values of k per step, in two buffers of
// shared memory.
constexpr int tile = 128, depth_step = 8, per_thread = 8;

struct Product {
  float const* a;  // (k, m)
  float const* b;  // (k, n)
  float* d;        // (m, n)
  int depth;
};

template <int threads>
COSMATI_KERNEL(threads, 1)
multiply(COSMATI_PARAMETER Product params) {
  constexpr int slice = tile * depth_step;
  int const self = emulator::thread();
  int const m = self / 16 * per_thread, n = self % 16 * per_thread;
  float* const shared = testing::shared<float>();  // (buffer, operand, k, m or n)
  auto const load = [&](int step) {
    float* const buffer = shared + step % 2 * 2 * slice;
    emulator::copy_async(buffer + 4 * self, params.a + step * slice + 4 * self, 16, 16);
    emulator::copy_async(buffer + slice + 4 * self, params.b + step * slice + 4 * self, 16, 16);
    emulator::commit_copies();
  };
  float sum[per_thread][per_thread] = {};  // (m, n)
  int const steps = params.depth / depth_step;
  load(0);
  for (int step = 0; step < steps; ++step) {
    emulator::wait_copies(0);
    emulator::block_barrier();
    if (step + 1 < steps) load(step + 1);
    float const* const a = shared + step % 2 * 2 * slice;
    float const* const b = a + slice;
    for (int k = 0; k < depth_step; ++k)
      for (int i = 0; i < per_thread; ++i)
        for (int j = 0; j < per_thread; ++j) sum[i][j] += a[k * tile + m + i] * b[k * tile + n + j];
  }
  for (int i = 0; i < per_thread; ++i)
    for (int j = 0; j < per_thread; ++j) params.d[(m + i) * tile + n + j] = sum[i][j];
}

TEST(Product, OfSmallIntegersIsExact) {
  constexpr int depth = 64;
  std::vector<float> a(depth * tile), b(depth * tile), d(tile * tile);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 7) - 3;
    b[i] = static_cast<float>(i % 11) - 5;
  }
  emulator::launch_kernel<multiply<256>>({1}, 256, 4 * tile * depth_step * sizeof(float),
                                         Product{a.data(), b.data(), d.data(), depth});
  for (std::size_t m = 0; m < tile; ++m)
    for (std::size_t n = 0; n < tile; ++n) {
      float expected = 0;
      for (std::size_t k = 0; k < depth; ++k) expected += a[k * tile + m] * b[k * tile + n];
      ASSERT_EQ(d[m * tile + n], expected) << "at (" << m << ", " << n << ")";
    }
}

}  // namespace
}  // namespace cosmati
