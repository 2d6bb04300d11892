// Tensor maps modified by a kernel in global memory: the host encodes them, and a kernel thread replaces
// their address. TMA reads maps through a separate proxy (PTX ISA, "tensormap.replace" and "membar / fence"),
// so the modifying thread releases them, and each block that uses one acquires it, also in a later kernel.
#pragma once
#include "cosmati/arch/tensor_copy.h"

namespace cosmati::arch {

// A map in global memory, aligned to the size that the fences name.
struct alignas(128) TensorMapOfDevice {
  TensorMap map;
};

#if defined(__CUDACC__)

// Called by the thread that wrote the map's bits: sets the array's address, a multiple of 16.
COSMATI_DEVICE void replace_address(TensorMap& map, void* address) {
  asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(
                   __cvta_generic_to_global(&map)),
               "l"(address)
               : "memory");
}
// Makes the maps modified by this thread visible to threads that acquire them afterwards.
COSMATI_DEVICE void release_maps() {
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}
// Called by a thread of each block before it uses a map modified by a kernel.
COSMATI_DEVICE void acquire(TensorMap const& map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
}

#else

COSMATI_DEVICE void replace_address(TensorMap& map, void* address) {
  emulator::replace_address(map, address);
}
COSMATI_DEVICE void release_maps() { emulator::release_maps(); }
// The emulator requires it of each thread that uses the map.
COSMATI_DEVICE void acquire(TensorMap const& map) { emulator::acquire_map(map); }

#endif

}  // namespace cosmati::arch
