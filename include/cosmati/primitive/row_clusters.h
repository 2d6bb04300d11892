// Rows kept by the blocks of a cluster; requires sm_90.
#pragma once
#include "cosmati/primitive/rows.h"

namespace cosmati {

// row_kernel() for rows shared by a cluster of blocks. Grid: positions * policy.cluster blocks.
template <class Traits>
COSMATI_CLUSTER_KERNEL(Traits::threads, Traits::packed ? 3 : 1, Traits::cluster)
row_cluster_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  Team const team(Traits::policy(params), Traits::threads);
  auto const number = static_cast<unsigned>(arch::block_x());
  typename RowKernelOf<Traits, Traits::packed>::Kernel kernel(
      params, team, static_cast<int>(number % Traits::cluster), number / Traits::cluster);
  kernel.run(arch::shared_storage<RowShared<Traits>>());
}

}  // namespace cosmati
