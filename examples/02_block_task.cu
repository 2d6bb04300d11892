// A user's kernel with a block-level product: for each of m queries, which of n centers is nearest? The
// products of queries and centers never leave the chip.
#include "cosmati/gemm/block_product.h"
#include "cosmati/gemm/order.h"
#include "cosmati/gemm/policies.h"
#include "examples/support.h"

using namespace cosmati;

using Rows = StridedSource<float, Along::k, 4>;  // row-major, 16 bytes at a time
constexpr GemmPolicy policy =
    named_policy(PolicyName::small, MainLoop::double_buffered, Multiply::fma, DataType::f32);
using Block = BlockProduct<ProductTraits<policy, Rows, Rows, float>>;

struct Search {
  float const* queries;  // (m, depth)
  float const* centers;  // (n, depth)
  int* nearest;          // (m)
  int m, n, depth;
};

// The kernel's own shared memory: the block task's part can be reused after each product.
struct Storage {
  union {
    Block::SharedStorage product;
    float score[Block::block_m][Block::block_n + 1];
  };
  float square[Block::block_n];  // |center|^2
};

template <class Task>
COSMATI_KERNEL(Task::threads, policy.blocks)
find_nearest(COSMATI_PARAMETER Search search) {
  Storage& shared = arch::shared_storage<Storage>();
  int const thread = arch::thread(), first_m = arch::block_x() * Task::block_m;
  Rows const queries(row_major(search.queries, search.depth), 0, first_m, search.m, search.depth);
  float best = 0;
  int best_n = -1;

  for (int first_n = 0; first_n < search.n; first_n += Task::block_n) {
    int const columns = imin(Task::block_n, search.n - first_n);
    for (int n = thread; n < columns; n += Task::threads) {  // our prologue
      float sum = 0;
      for (int l = 0; l < search.depth; ++l) {
        float const x = search.centers[(first_n + n) * search.depth + l];
        sum += x * x;
      }
      shared.square[n] = sum;
    }

    Rows const centers(row_major(search.centers, search.depth), 0, first_n, search.n, search.depth);
    Task const task(shared.product);
    auto const sums = task.multiply(queries, centers, search.depth);

    task.for_each(sums, [&](int m, int n, float sum) { shared.score[m][n] = sum; });  // our epilogue
    arch::block_barrier();
    if (thread < Task::block_m)
      for (int n = 0; n < columns; ++n) {
        float const distance = shared.square[n] - 2 * shared.score[thread][n];
        if (best_n < 0 || distance < best) best = distance, best_n = first_n + n;
      }
    arch::block_barrier();  // the next product overwrites the scores
  }
  if (thread < Task::block_m && first_m + thread < search.m) search.nearest[first_m + thread] = best_n;
}

int main() {
  if (example::no_gpu()) return example::skipped;
  int const m = 150, n = 100, depth = 20;
  example::Memory<float> queries(m * depth), centers(n * depth);
  example::Memory<int> nearest(m);
  example::fill(queries, m * depth, 1);
  example::fill(centers, n * depth, 2);

  int const blocks = (m + Block::block_m - 1) / Block::block_m;
  Search const search{queries.data(), centers.data(), nearest.data(), m, n, depth};
  example::launch<&find_nearest<Block>>(blocks, Block::threads, sizeof(Storage), search);
  example::wait();

  auto const distance = [&](int i, int j) {
    float sum = 0;
    for (int l = 0; l < depth; ++l) {
      float const difference = queries[i * depth + l] - centers[j * depth + l];
      sum += difference * difference;
    }
    return sum;
  };
  return example::verdict(
      m, 1, [&](int i, int) { return nearest[i]; },
      [&](int i, int) {
        int best = 0;
        for (int j = 1; j < n; ++j)
          if (distance(i, j) < distance(i, best)) best = j;
        return best;
      });
}
