// Clusters: blocks that run at the same time and can access each other's shared memory.
#pragma once
#include "cosmati/arch/config.h"
#if !defined(__CUDACC__)
#include "cosmati/arch/emulator_async.h"
#endif

namespace cosmati::arch {

#if defined(__CUDACC__)

COSMATI_DEVICE int block_of_cluster() {  // the rank of this block, x fastest
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
COSMATI_DEVICE int blocks_of_cluster() {
  int blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

// The barrier of all threads of the cluster that have not exited, split into arrival and wait; complete
// warps.
COSMATI_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
// The same without releasing memory accesses, except those before publish_barriers().
COSMATI_DEVICE void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
COSMATI_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// The object at the same offset in the shared memory of another block of the cluster.
template <class T>
COSMATI_DEVICE T* in_block(T* shared, int block_of_cluster) {
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(block_of_cluster));
  return there;
}

#else

COSMATI_DEVICE int block_of_cluster() { return emulator::block_of_cluster(); }
COSMATI_DEVICE int blocks_of_cluster() { return emulator::blocks_of_cluster(); }
COSMATI_DEVICE void cluster_arrive() { emulator::cluster_arrive(); }
COSMATI_DEVICE void cluster_arrive_relaxed() { emulator::cluster_arrive(); }
COSMATI_DEVICE void cluster_wait() { emulator::cluster_wait(); }

template <class T>
COSMATI_DEVICE T* in_block(T* shared, int block_of_cluster) {
  return static_cast<T*>(emulator::in_block(shared, block_of_cluster));
}

#endif

}  // namespace cosmati::arch
