// Adds the partial sums of several blocks in a fixed order.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"

namespace cosmati {

// Shared memory of a block that adds `lanes` adjacent sums; `slices` threads have the same sum of different
// parts.
template <int threads, int slices_>
struct SumOfBlocks {
  static constexpr int slices = slices_, lanes = threads / slices;
  float sum[slices][lanes];

  COSMATI_DEVICE static int lane() { return arch::thread() % lanes; }
  // Whether total() returns the sum to this thread.
  COSMATI_DEVICE static bool is_first() { return arch::thread() < lanes; }
  // Returns from[0] + from[stride] + ..., of `parts` parts; called by all threads. `exists`: whether this
  // lane's sum does.
  COSMATI_DEVICE float total(float const* from, bool exists, Index stride, int parts) {
    int const slice = arch::thread() / lanes;
    float own = 0;
    constexpr int batch = 12;  // loads in flight
    COSMATI_NO_UNROLL
    for (int first = exists ? slice : parts; first < parts; first += batch * slices) {
      float value[batch];
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) {
        int const part = first + u * slices;
        value[u] = part < parts ? from[part * stride] : 0.0F;
      }
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) own += value[u];
    }
    sum[slice][lane()] = own;
    arch::block_barrier();
    if (!is_first()) return 0;
    COSMATI_UNROLL
    for (int i = 1; i < slices; ++i) own += sum[i][lane()];
    return own;
  }
};

}  // namespace cosmati
