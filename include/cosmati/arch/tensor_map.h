// Tensor maps that a kernel changes in global memory: the host encodes them, a thread of a kernel replaces
// their address. PTX ISA, "tensormap.replace" and "membar / fence": the engine reads maps through a proxy of
// its own, so who has changed some releases them, and each block that uses one acquires it, also in a later
// kernel.
#pragma once
#include "cosmati/arch/tensor_copy.h"

namespace cosmati::arch {

// In global memory, at a multiple of the size that the fences name.
struct alignas(128) TensorMapOfDevice {
  TensorMap map;
};

#if defined(__CUDACC__)

// By the thread that has written the map's bits: what it moves begins at `address`, a multiple of 16.
COSMATI_DEVICE void replace_address(TensorMap& map, void* address) {
  asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(
                   __cvta_generic_to_global(&map)),
               "l"(address)
               : "memory");
}
// The maps that this thread has changed are seen by those who acquire them afterwards.
COSMATI_DEVICE void release_maps() {
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}
// By a thread of each block, before it uses a map that a kernel has changed.
COSMATI_DEVICE void acquire(TensorMap const& map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
}

#else

COSMATI_DEVICE void replace_address(TensorMap& map, void* address) {
  emulator::replace_address(map, address);
}
COSMATI_DEVICE void release_maps() { emulator::release_maps(); }
// The emulator wants it from each thread that uses the map.
COSMATI_DEVICE void acquire(TensorMap const& map) { emulator::acquire_map(map); }

#endif

}  // namespace cosmati::arch
