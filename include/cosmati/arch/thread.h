// Who a thread is, where it waits, and the shared memory of its block.
#pragma once
#include "cosmati/arch/config.h"
#if !defined(__CUDACC__)
#include "cosmati/arch/emulator.h"
#endif

namespace cosmati::arch {

#if defined(__CUDACC__)

COSMATI_DEVICE int thread() { return static_cast<int>(threadIdx.x); }  // in the block, along x alone
COSMATI_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
COSMATI_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
COSMATI_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }
COSMATI_DEVICE void block_barrier() { __syncthreads(); }

// True for all threads of the block if it is for one of them.
COSMATI_DEVICE bool block_any(bool mine) { return __syncthreads_or(mine) != 0; }

// The dynamic shared memory of the block.
template <class Storage>
COSMATI_DEVICE Storage& shared_storage() {
  extern __shared__ __align__(1024) unsigned char cosmati_shared_bytes[];
  return *reinterpret_cast<Storage*>(cosmati_shared_bytes);
}

#else

COSMATI_DEVICE int thread() { return emulator::thread(); }
COSMATI_DEVICE int block_x() { return emulator::block().x; }
COSMATI_DEVICE int block_y() { return emulator::block().y; }
COSMATI_DEVICE int block_z() { return emulator::block().z; }
COSMATI_DEVICE void block_barrier() { emulator::block_barrier(); }
COSMATI_DEVICE bool block_any(bool mine) { return emulator::block_any(mine); }

template <class Storage>
COSMATI_DEVICE Storage& shared_storage() {
  return *reinterpret_cast<Storage*>(emulator::shared_memory());
}

#endif

}  // namespace cosmati::arch
