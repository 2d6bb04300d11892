// A user's policy, for a product that no named policy suits: a small D with a large k. A single tile of D
// would keep only one multiprocessor busy, so several blocks share it, each summing a part of k.
#include "cosmati/gemm/launch.h"
#include "cosmati/gemm/simple.h"
#include "examples/support.h"

constexpr cosmati::GemmPolicy deep{
    .block_m = 64,  // tile of D per block,
    .block_n = 64,
    .block_k = 16,  // and its step of k
    .warp_m = 32,   // per warp: 2 x 2 warps
    .warp_n = 32,
    .thread_m = 8,  // per thread: 4 x 8 lanes
    .thread_n = 4,
    .stages = 4,
    .blocks = 3,  // resident blocks per multiprocessor: at most 168 registers per thread
    .main_loop = cosmati::MainLoop::multistage,
    .partition = cosmati::Partition::split_k,
    .epilogue = cosmati::EpilogueSchedule::staged,
};
using Gemm = cosmati::SimpleGemm<float, cosmati::all_row_major, deep>;

int main() {
  if (example::no_gpu()) return example::skipped;
  int const m = 60, n = 52, k = 2000, splits = 8;
  example::Memory<float> a(m * k), b(k * n), d(m * n);
  example::fill(a, m * k, 1);
  example::fill(b, k * n, 2);
  std::printf("%d threads and %d bytes of shared memory a block\n", Gemm::threads,
              static_cast<int>(sizeof(Gemm::SharedStorage)));

  // The partial sums are stored in a workspace and added in a fixed order, so every run gives the same bits.
  example::Memory<char> workspace(cosmati::gemm_workspace_bytes<Gemm>(m, n, 1, splits));
  Gemm::Params params =
      Gemm::params({.m = m, .n = n, .k = k, .a = {a.data(), k}, .b = {b.data(), n}, .d = {d.data(), n}});
  params.schedule = cosmati::split_schedule<Gemm>(workspace.data(), m, n, 1, splits);
  example::check(cosmati::launch_gemm<Gemm>(params));
  example::wait();

  return example::verdict(
      m, n, [&](int i, int j) { return d[i * n + j]; },
      [&](int i, int j) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
        return sum;
      });
}
