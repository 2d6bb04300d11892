// Matrices whose strides exceed 32 bits.
#include <sys/mman.h>

#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

// Reserved address space in which only touched pages use memory.
class Reservation {
 public:
  explicit Reservation(std::size_t bytes)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                     0)) {}
  ~Reservation() {
    if (here()) munmap(memory_, bytes_);
  }
  Reservation(Reservation const&) = delete;
  Reservation& operator=(Reservation const&) = delete;
  bool here() const { return memory_ != MAP_FAILED; }
  float* data() const { return static_cast<float*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_;
};

template <MainLoop main_loop>
void expect_far() {
  constexpr Index far = (Index{1} << 31) + 8, m = 3, n = 2, k = 5;
  Reservation const a(static_cast<std::size_t>(far * m) * sizeof(float));
  Reservation const b(static_cast<std::size_t>(far * k) * sizeof(float));
  Reservation const d(static_cast<std::size_t>(far * m) * sizeof(float));
  if (!a.here() || !b.here() || !d.here()) GTEST_SKIP() << "no address space of 40 GB here";
  for (Index i = 0; i < m; ++i)
    for (Index q = 0; q < k; ++q) a.data()[i * far + q] = static_cast<float>(i * k + q);
  for (Index q = 0; q < k; ++q)
    for (Index j = 0; j < n; ++j) b.data()[q * far + j] = static_cast<float>(q - j);

  using Gemm = GemmTraits<small_policy(main_loop), StridedSource<float, Along::k, 4>,
                          StridedSource<float, Along::mn, 4>, float, IdentityEpilogue<float>,
                          StridedDestination<float, 4>>;
  typename Gemm::Params params;
  params.m = m, params.n = n, params.k = k;
  params.a = {a.data(), nullptr, far, 1, 0};
  params.b = {b.data(), nullptr, 1, far, 0};
  params.d = {d.data(), nullptr, far, 1, 0};
  emulator::launch_kernel<&gemm_kernel<Gemm>>({1, 1, 1}, Gemm::threads, sizeof(typename Gemm::SharedStorage),
                                              params);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      float sum = 0;
      for (Index q = 0; q < k; ++q) sum += static_cast<float>((i * k + q) * (q - j));
      EXPECT_EQ(d.data()[i * far + j], sum);
    }
}

TEST(EmulatedGemmFar, LeadingDimensionsPast32Bits) {
  expect_far<MainLoop::double_buffered>();
  expect_far<MainLoop::multistage>();
}

}  // namespace
}  // namespace cosmati::emulated
