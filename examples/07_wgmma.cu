// Tensor cores of a warpgroup in a user's kernel (wgmma, sm_90a): D = A * B^T, 64 x 128 elements per block.
// wgmma reads its operands from swizzled shared memory; here threads copy them there by cp.async, one step
// ahead, without tensor maps. gemm/warp_specialized.h is the full version of this kernel.
#include "cosmati/gemm/order.h"
#include "cosmati/gemm/tile_copier.h"
#include "cosmati/gemm/warpgroup_product.h"
#include "examples/support.h"

using namespace cosmati;

using Rows = StridedSource<bf16, Along::k, 8>;  // row-major, 16 bytes at a time
constexpr GemmPolicy policy{
    .block_m = 64,  // four warps of 16 rows each
    .block_n = 128,
    .block_k = 64,  // 128 bytes: a row of the widest swizzle
    .warp_m = 16,
    .warp_n = 128,
    .thread_m = 2,   // wgmma determines a thread's elements: an eighth of the warp's rows,
    .thread_n = 32,  // a quarter of its columns
    .stages = 2,
    .main_loop = MainLoop::warp_specialized,
    .multiply = Multiply::wgmma,
};
using Product = WarpgroupProduct<policy, Rows, Rows, float>;
constexpr int threads = 128;

struct Problem {
  bf16 const* a;  // (m, k)
  bf16 const* b;  // (n, k)
  float* d;       // (m, n)
  int m, n, k;
};

template <class Operands>
struct Stages {
  typename Operands::TileA a[policy.stages];
  typename Operands::TileB b[policy.stages];
};

template <class Operands>
COSMATI_KERNEL(threads, 1)
multiply(COSMATI_PARAMETER Problem problem) {
  auto& shared = arch::shared_storage<Stages<Operands>>();
  int const thread = arch::thread(), tiles_n = (problem.n + policy.block_n - 1) / policy.block_n;
  int const first_m = arch::block_x() / tiles_n * policy.block_m;
  int const first_n = arch::block_x() % tiles_n * policy.block_n;
  TileCopier<Rows, typename Operands::TileA, threads> const copier_a(row_major(problem.a, problem.k), 0,
                                                                     first_m, problem.m, problem.k, thread);
  TileCopier<Rows, typename Operands::TileB, threads> const copier_b(row_major(problem.b, problem.k), 0,
                                                                     first_n, problem.n, problem.k, thread);
  int const steps = (problem.k + policy.block_k - 1) / policy.block_k;
  auto const fetch = [&](int step) {
    if (step < steps) {
      copier_a.copy(shared.a[step % policy.stages], step * policy.block_k);
      copier_b.copy(shared.b[step % policy.stages], step * policy.block_k);
    }
    arch::commit_copies();
  };

  Operands const operands(shared.a[0], shared.b[0], 0);
  typename Operands::Fragments fragments;  // empty, since both operands are read from shared memory
  typename Operands::Product sums;
  sums.clear();
  fetch(0);
  for (int step = 0; step < steps; ++step) {
    fetch(step + 1);
    arch::wait_copies<1>();    // waits for the copies of this step
    arch::publish_to_async();  // makes this thread's writes visible to the tensor cores,
    arch::block_barrier();     // and those of the other threads
    operands.multiply(sums, fragments, step % policy.stages, step > 0);
    arch::warpgroup_wait<0>();
    arch::block_barrier();  // the stage may be overwritten
  }
  sums.fence_registers();

  constexpr auto partition_m = Operands::partition_m;
  constexpr auto partition_n = Operands::partition_n;
  ThreadPlace const place = Operands::place(thread);
  COSMATI_UNROLL
  for (int i = 0; i < policy.thread_m; ++i) {
    COSMATI_UNROLL
    for (int j = 0; j < policy.thread_n; ++j) {
      int const m = first_m + partition_m.position(place.warp_m, place.lane_m, i);
      int const n = first_n + partition_n.position(place.warp_n, place.lane_n, j);
      if (m < problem.m && n < problem.n) problem.d[m * problem.n + n] = sums.get(i, j);
    }
  }
}

int main() {
  if (example::no_gpu()) return example::skipped;
  int const m = 100, n = 150, k = 200;
  example::Memory<bf16> a(m * k), b(n * k);
  example::Memory<float> d(m * n);
  example::fill(a, m * k, 1);
  example::fill(b, n * k, 2);

  int const blocks = (m + policy.block_m - 1) / policy.block_m * ((n + policy.block_n - 1) / policy.block_n);
  Problem const problem{a.data(), b.data(), d.data(), m, n, k};
  example::launch<&multiply<Product>>(blocks, threads, sizeof(Stages<Product>), problem);
  example::wait();

  return example::verdict(
      m, n, [&](int i, int j) { return d[i * n + j]; },
      [&](int i, int j) {
        float sum = 0;
        for (int l = 0; l < k; ++l)
          sum += static_cast<float>(a[i * k + l]) * static_cast<float>(b[j * k + l]);
        return sum;
      });
}
