// Limits on the blocks of a cluster.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// The portable maximum of blocks per cluster, which every GPU with clusters supports. No kernel here opts in
// to the 16 that some GPUs allow.
inline constexpr int max_cluster_blocks = 8, max_opt_in_cluster_blocks = 16;

// Whether this many blocks of a cluster can share a tile along k: a power of two.
COSMATI_CONSTEXPR bool is_cluster_k(int blocks) {
  return blocks >= 1 && blocks <= max_cluster_blocks && (blocks & (blocks - 1)) == 0;
}

}  // namespace cosmati
