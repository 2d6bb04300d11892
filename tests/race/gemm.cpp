// The GEMM kernels: both main loops, both epilogue schedules, split-K. None of them may race.
#include <vector>

#include "cosmati/gemm/kernel.h"
#include "tests/race/race.h"

namespace cosmati {
namespace {

constexpr GemmPolicy policy_of(MainLoop main_loop, EpilogueSchedule epilogue,
                               Partition partition = Partition::split_k) {
  GemmPolicy policy;
  policy.block_m = policy.block_n = 32;
  policy.warp_m = 16, policy.warp_n = 32;
  policy.thread_m = policy.thread_n = 4;
  policy.main_loop = main_loop;
  policy.stages = main_loop == MainLoop::multistage ? 3 : 2;
  policy.partition = partition;
  policy.epilogue = epilogue;
  return policy;
}

template <MainLoop main_loop, EpilogueSchedule epilogue, Along along,
          Partition partition = Partition::split_k>
void multiply() {
  using Gemm = GemmTraits<policy_of(main_loop, epilogue, partition), StridedSource<float, along, 1>,
                          StridedSource<float, along, 4>, float, IdentityEpilogue<float>,
                          StridedDestination<float, 4>>;
  constexpr int m = 40, n = 64, k = 48, splits = 2, tiles = 4, blocks = 3;
  constexpr bool streams = partition == Partition::stream_k;
  std::vector<float> a(m * k, 1), b(n * k, 1), d(m * n);
  std::vector<float> partials(tiles * 32 * 32 + 4);
  std::vector<unsigned long long> flags(tiles);
  constexpr bool by_depth = along == Along::k;
  typename Gemm::Params params;
  params.m = m, params.n = n, params.k = k;
  params.a = {a.data(), nullptr, by_depth ? k : 1, by_depth ? 1 : m, 0};
  params.b = {b.data(), nullptr, by_depth ? k : 1, by_depth ? 1 : n, 0};
  params.d = {d.data(), nullptr, n, 1, 0};
  params.schedule.splits = streams ? 1 : splits;
  params.schedule.streamed = streams ? tiles : 0;
  params.schedule.partials =
      partials.data() + (16 - reinterpret_cast<std::size_t>(partials.data()) % 16) % 16 / 4;
  params.schedule.flags = flags.data();
  params.schedule.tag = 5;
  emulator::Grid const grid = streams ? emulator::Grid{blocks} : emulator::Grid{tiles, splits};
  emulator::launch_kernel<&gemm_kernel<Gemm>>(grid, Gemm::threads, sizeof(typename Gemm::SharedStorage),
                                              params);
}

// mma.sync and ldmatrix, which transposes M- and N-major operands; WMMA, which stores to shared memory.
template <Along along, Multiply multiply = Multiply::mma>
void multiply_by_tensor_cores() {
  constexpr GemmPolicy policy = [] {
    GemmPolicy p = policy_of(MainLoop::multistage, EpilogueSchedule::staged);
    p.block_k = 32;
    p.thread_m = 2, p.thread_n = 8;
    p.multiply = multiply;
    p.partition = Partition::tiles;
    return p;
  }();
  using Gemm = GemmTraits<policy, StridedSource<f16, along, 8>, StridedSource<f16, along, 8>, float,
                          IdentityEpilogue<float>, StridedDestination<float, 4>>;
  constexpr int m = 40, n = 64, k = 96;
  std::vector<f16> a(m * k, f16(1.0)), b(n * k, f16(1.0));
  std::vector<float> d(m * n);
  constexpr bool by_depth = along == Along::k;
  typename Gemm::Params params;
  params.m = m, params.n = n, params.k = k;
  params.a = {a.data(), nullptr, by_depth ? k : 1, by_depth ? 1 : m, 0};
  params.b = {b.data(), nullptr, by_depth ? k : 1, by_depth ? 1 : n, 0};
  params.d = {d.data(), nullptr, n, 1, 0};
  emulator::launch_kernel<&gemm_kernel<Gemm>>({4, 1, 1}, Gemm::threads, sizeof(typename Gemm::SharedStorage),
                                              params);
}

constexpr MainLoop buffered = MainLoop::double_buffered, multistage = MainLoop::multistage;
constexpr EpilogueSchedule direct = EpilogueSchedule::direct, staged = EpilogueSchedule::staged;

race::Registered const kernels[] = {
    {"clean_gemm_double_buffered", [] { multiply<buffered, direct, Along::k>(); }},
    {"clean_gemm_double_buffered_staged", [] { multiply<buffered, staged, Along::mn>(); }},
    {"clean_gemm_multistage", [] { multiply<multistage, direct, Along::mn>(); }},
    {"clean_gemm_multistage_staged", [] { multiply<multistage, staged, Along::k>(); }},
    {"clean_gemm_stream_k", [] { multiply<multistage, staged, Along::k, Partition::stream_k>(); }},
    {"clean_gemm_tensor_cores", [] { multiply_by_tensor_cores<Along::k>(); }},
    {"clean_gemm_tensor_cores_transposed", [] { multiply_by_tensor_cores<Along::mn>(); }},
    {"clean_gemm_wmma", [] { multiply_by_tensor_cores<Along::mn, Multiply::wmma>(); }},
};

}  // namespace
}  // namespace cosmati
