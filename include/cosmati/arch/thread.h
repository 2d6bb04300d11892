// Thread indices, barriers, and the shared memory of the block.
#pragma once
#include "cosmati/arch/config.h"
#if !defined(__CUDACC__)
#include "cosmati/arch/emulator.h"
#endif

namespace cosmati::arch {

#if defined(__CUDACC__)

// Index in the block, which is one-dimensional.
COSMATI_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
COSMATI_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
COSMATI_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
COSMATI_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }
COSMATI_DEVICE int grid_x() { return static_cast<int>(gridDim.x); }
COSMATI_DEVICE void block_barrier() { __syncthreads(); }
COSMATI_DEVICE void warp_barrier() { __syncwarp(); }

// Programmatic dependent launch: a kernel may start before the previous one in the stream has finished, and
// must not access shared data before the wait.
COSMATI_DEVICE void let_next_kernel_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
COSMATI_DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Marks a value as equal in all lanes of a warp, so that the compiler can use a uniform register.
COSMATI_DEVICE int uniform(int value) { return __shfl_sync(~0u, value, 0); }

// The value of the lane whose index differs by the bits of `mask`; called by all lanes of the warp.
template <class T>
COSMATI_DEVICE T exchange(T value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}

// Forces the value to be computed here, rather than recomputed or moved to its use.
COSMATI_DEVICE void fence_registers(float& value) { asm volatile("" : "+f"(value)); }
COSMATI_DEVICE void fence_registers(double& value) { asm volatile("" : "+d"(value)); }
COSMATI_DEVICE void fence_registers(int& value) { asm volatile("" : "+r"(value)); }
// Leaves the value uninitialized, without an instruction.
COSMATI_DEVICE void keep_uninitialized(float& value) { asm volatile("" : "=f"(value)); }
COSMATI_DEVICE void keep_uninitialized(int& value) { asm volatile("" : "=r"(value)); }

// Returns true to all threads of the block if `mine` is true for any of them.
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
COSMATI_DEVICE int grid_x() { return emulator::grid().x; }
COSMATI_DEVICE void block_barrier() { emulator::block_barrier(); }
COSMATI_DEVICE void warp_barrier() {
  emulator::warp_collective("__syncwarp", ~0u, nullptr, [](void* const*, void*) {});
}
COSMATI_DEVICE void let_next_kernel_start() {}
COSMATI_DEVICE void wait_for_previous_kernel() {}
COSMATI_DEVICE int uniform(int value) { return value; }
template <class T>
COSMATI_DEVICE T exchange(T value, int mask) {
  struct Lane {
    T value, other;
    int mask;
  } lane{value, value, mask};
  emulator::warp_collective("__shfl_xor_sync", ~0u, &lane, [](void* const* lanes, void*) {
    for (int i = 0; i < 32; ++i) {
      auto& self = *static_cast<Lane*>(lanes[i]);
      self.other = static_cast<Lane*>(lanes[i ^ self.mask])->value;
    }
  });
  return lane.other;
}
template <class T>
COSMATI_DEVICE void fence_registers(T&) {}
template <class T>
COSMATI_DEVICE void keep_uninitialized(T&) {}
COSMATI_DEVICE bool block_any(bool mine) { return emulator::block_any(mine); }

template <class Storage>
COSMATI_DEVICE Storage& shared_storage() {
  return *reinterpret_cast<Storage*>(emulator::shared_memory());
}

#endif

}  // namespace cosmati::arch
