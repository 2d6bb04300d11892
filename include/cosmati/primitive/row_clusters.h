// Rows kept by the blocks of a cluster; requires sm_90.
#pragma once
#include "cosmati/primitive/rows.h"

namespace cosmati {

// Blocks per multiprocessor; the logarithm of softmax, which the compiler converts only once, needs more
// registers.
template <class Traits>
inline constexpr int resident_row_clusters =
    !Traits::packed                                                    ? 1
    : Traits::operation == static_cast<int>(RowOperation::log_softmax) ? 3
                                                                       : 5;

// row_kernel() for rows shared by a cluster of blocks. Grid: positions * policy.cluster blocks.
template <class Traits>
COSMATI_CLUSTER_KERNEL(Traits::threads, resident_row_clusters<Traits>, Traits::cluster)
row_cluster_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  Team const team(Traits::policy(params), Traits::threads);
  auto const number = static_cast<unsigned>(arch::block_x());
  typename RowKernelOf<Traits, Traits::packed>::Kernel kernel(
      params, team, static_cast<int>(number % Traits::cluster), number / Traits::cluster);
  kernel.run(arch::shared_storage<RowShared<Traits>>());
}

}  // namespace cosmati
