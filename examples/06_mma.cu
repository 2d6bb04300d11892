// Tensor cores in a user's kernel (mma.sync, sm_80 and later): for each of m queries, how many of n keys
// score above a threshold? Scores are products of 16-bit numbers with f32 sums, and never leave the chip.
#include "cosmati/gemm/block_product.h"
#include "cosmati/gemm/order.h"
#include "cosmati/gemm/policies.h"
#include "examples/support.h"

using namespace cosmati;

// Compared with a block task in f32: 16-bit operands are copied unconverted by cp.async; the policy
// multiplies by mma, which determines the elements of D that a thread holds; sums are still f32.
using Rows = StridedSource<f16, Along::k, 8>;  // row-major, 16 bytes at a time
constexpr GemmPolicy policy =
    named_policy(PolicyName::small, MainLoop::multistage, Multiply::mma, DataType::f32, sizeof(f16));
using Block = BlockProduct<ProductTraits<policy, Rows, Rows, float>>;

struct Search {
  f16 const* queries;  // (m, depth)
  f16 const* keys;     // (n, depth)
  int* counts;         // (m)
  int m, n, depth;
  float threshold;
};

union Storage {
  Block::SharedStorage product;
  int count[Block::block_m][Block::block_n + 1];  // 1 where the score is above the threshold
};

template <class Task>
COSMATI_KERNEL(Task::threads, policy.blocks)
count_scores(COSMATI_PARAMETER Search search) {
  Storage& shared = arch::shared_storage<Storage>();
  int const thread = arch::thread(), first_m = arch::block_x() * Task::block_m;
  Rows const queries(row_major(search.queries, search.depth), 0, first_m, search.m, search.depth);
  int count = 0;
  for (int first_n = 0; first_n < search.n; first_n += Task::block_n) {
    Rows const keys(row_major(search.keys, search.depth), 0, first_n, search.n, search.depth);
    Task const task(shared.product);
    auto const sums = task.multiply(queries, keys, search.depth);
    task.for_each(sums, [&](int m, int n, float score) {
      shared.count[m][n] = first_n + n < search.n && score > search.threshold ? 1 : 0;
    });
    arch::block_barrier();
    if (thread < Task::block_m)
      for (int n = 0; n < Task::block_n; ++n) count += shared.count[thread][n];
    arch::block_barrier();  // the next product overwrites them
  }
  if (thread < Task::block_m && first_m + thread < search.m) search.counts[first_m + thread] = count;
}

int main() {
  if (example::no_gpu()) return example::skipped;
  int const m = 150, n = 100, depth = 72;
  float const threshold = 6;
  example::Memory<f16> queries(m * depth), keys(n * depth);
  example::Memory<int> counts(m);
  example::fill(queries, m * depth, 1);
  example::fill(keys, n * depth, 2);

  int const blocks = (m + Block::block_m - 1) / Block::block_m;
  Search const search{queries.data(), keys.data(), counts.data(), m, n, depth, threshold};
  example::launch<&count_scores<Block>>(blocks, Block::threads, sizeof(Storage), search);
  example::wait();

  return example::verdict(
      m, 1, [&](int i, int) { return counts[i]; },
      [&](int i, int) {
        int count = 0;
        for (int j = 0; j < n; ++j) {
          float sum = 0;
          for (int l = 0; l < depth; ++l)
            sum += static_cast<float>(queries[i * depth + l]) * static_cast<float>(keys[j * depth + l]);
          count += sum > threshold ? 1 : 0;
        }
        return count;
      });
}
