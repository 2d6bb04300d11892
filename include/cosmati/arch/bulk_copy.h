// Copies of contiguous bytes between global and shared memory by the copy engine, issued by one thread. Both
// addresses and the number of bytes are multiples of 16.
#pragma once
#include "cosmati/arch/tensor_copy.h"

namespace cosmati::arch {

#if defined(__CUDACC__)

// Copies to shared memory and completes the bytes on the barrier.
COSMATI_DEVICE void copy_bulk(void* shared, void const* global, int bytes, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(shared)),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}
// Copies to global memory, in the calling thread's open group of stores.
COSMATI_DEVICE void store_bulk(void* global, void const* shared, int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(global)),
      "r"(shared_address(shared)), "r"(bytes)
      : "memory");
}

#else

COSMATI_DEVICE void copy_bulk(void* shared, void const* global, int bytes, Barrier& barrier) {
  emulator::load_bytes(shared, global, bytes, &barrier);
}
COSMATI_DEVICE void store_bulk(void* global, void const* shared, int bytes) {
  emulator::store_bytes(global, shared, bytes);
}

#endif

}  // namespace cosmati::arch
