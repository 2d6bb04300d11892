// TMA copies of boxes of an array between global and shared memory, issued by one thread. Coordinates are in
// elements, the contiguous dimension first; elements outside the array are read as zeros and not written.
// Boxes in shared memory are multiples of 128 bytes.
#pragma once
#include "cosmati/arch/barrier.h"

namespace cosmati::arch {

// The bits of a CUtensorMap; in the emulator, those of emulator::encode_tensor_map(). A kernel parameter.
struct alignas(64) TensorMap {
  unsigned long long word[16];
};

#if defined(__CUDACC__)

#define COSMATI_COORDINATES_1 "r"(c[0])
#define COSMATI_COORDINATES_2 COSMATI_COORDINATES_1, "r"(c[1])
#define COSMATI_COORDINATES_3 COSMATI_COORDINATES_2, "r"(c[2])
#define COSMATI_COORDINATES_4 COSMATI_COORDINATES_3, "r"(c[3])
#define COSMATI_COORDINATES_5 COSMATI_COORDINATES_4, "r"(c[4])
#define COSMATI_LOAD(rank, list)                                                              \
  asm volatile("cp.async.bulk.tensor." #rank                                                  \
               "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" list \
               "}], [%2];" ::"r"(to),                                                         \
               "l"(&map), "r"(at), COSMATI_COORDINATES_##rank                                 \
               : "memory")
#define COSMATI_LOAD_TO_BLOCKS(rank, list)                                                              \
  asm volatile(                                                                                         \
      "cp.async.bulk.tensor." #rank                                                                     \
      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" list \
      "}], [%2], %3;" ::"r"(to),                                                                        \
      "l"(&map), "r"(at), "h"(blocks), COSMATI_COORDINATES_##rank                                       \
      : "memory")
#define COSMATI_STORE(rank, list)                                                               \
  asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta.tile.bulk_group [%1, {" list \
               "}], [%0];" ::"r"(from),                                                         \
               "l"(&map), COSMATI_COORDINATES_##rank                                            \
               : "memory")

// Copies a box from global to shared memory and completes all its bytes on the barrier.
template <int rank>
COSMATI_DEVICE void copy_tile(void* shared, TensorMap const& map, Barrier& barrier, int const (&c)[rank]) {
  unsigned const to = shared_address(shared), at = shared_address(&barrier);
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  if constexpr (rank == 1) COSMATI_LOAD(1, "%3");
  if constexpr (rank == 2) COSMATI_LOAD(2, "%3, %4");
  if constexpr (rank == 3) COSMATI_LOAD(3, "%3, %4, %5");
  if constexpr (rank == 4) COSMATI_LOAD(4, "%3, %4, %5, %6");
  if constexpr (rank == 5) COSMATI_LOAD(5, "%3, %4, %5, %6, %7");
}
// Multicasts to the same offset in each block of the cluster whose bit is set in `blocks`, and to the barrier
// there.
template <int rank>
COSMATI_DEVICE void copy_tile_to_blocks(void* shared, TensorMap const& map, Barrier& barrier,
                                        int const (&c)[rank], unsigned short blocks) {
  unsigned const to = shared_address(shared), at = shared_address(&barrier);
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  if constexpr (rank == 1) COSMATI_LOAD_TO_BLOCKS(1, "%4");
  if constexpr (rank == 2) COSMATI_LOAD_TO_BLOCKS(2, "%4, %5");
  if constexpr (rank == 3) COSMATI_LOAD_TO_BLOCKS(3, "%4, %5, %6");
  if constexpr (rank == 4) COSMATI_LOAD_TO_BLOCKS(4, "%4, %5, %6, %7");
  if constexpr (rank == 5) COSMATI_LOAD_TO_BLOCKS(5, "%4, %5, %6, %7, %8");
}
// Copies a box from shared to global memory, in the calling thread's open group of stores.
template <int rank>
COSMATI_DEVICE void store_tile(TensorMap const& map, void const* shared, int const (&c)[rank]) {
  unsigned const from = shared_address(shared);
  static_assert(rank >= 1 && rank <= 5, "a tensor map has 1 to 5 dimensions");
  if constexpr (rank == 1) COSMATI_STORE(1, "%2");
  if constexpr (rank == 2) COSMATI_STORE(2, "%2, %3");
  if constexpr (rank == 3) COSMATI_STORE(3, "%2, %3, %4");
  if constexpr (rank == 4) COSMATI_STORE(4, "%2, %3, %4, %5");
  if constexpr (rank == 5) COSMATI_STORE(5, "%2, %3, %4, %5, %6");
}
#undef COSMATI_COORDINATES_1
#undef COSMATI_COORDINATES_2
#undef COSMATI_COORDINATES_3
#undef COSMATI_COORDINATES_4
#undef COSMATI_COORDINATES_5
#undef COSMATI_LOAD
#undef COSMATI_LOAD_TO_BLOCKS
#undef COSMATI_STORE

// Closes the calling thread's group of stores.
COSMATI_DEVICE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until all but the latest `in_flight` groups of the calling thread have read shared memory.
template <int in_flight>
COSMATI_DEVICE void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(in_flight) : "memory");
}
// The same, until they have also written to global memory.
template <int in_flight>
COSMATI_DEVICE void wait_stores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(in_flight) : "memory");
}
COSMATI_DEVICE void prefetch(TensorMap const& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// Makes this thread's writes to shared memory visible to later reads by TMA and tensor cores.
COSMATI_DEVICE void publish_to_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Permits tensor cores to read bytes of shared memory that nothing writes, which the emulator otherwise
// reports; there they are NaNs. No instruction.
COSMATI_DEVICE void permit_unwritten(void const*, int) {}

#else

template <int rank>
COSMATI_DEVICE void copy_tile(void* shared, TensorMap const& map, Barrier& barrier, int const (&c)[rank]) {
  emulator::load_tile(shared, map, &barrier, rank, c, 0);
}
template <int rank>
COSMATI_DEVICE void copy_tile_to_blocks(void* shared, TensorMap const& map, Barrier& barrier,
                                        int const (&c)[rank], unsigned short blocks) {
  emulator::load_tile(shared, map, &barrier, rank, c, blocks);
}
template <int rank>
COSMATI_DEVICE void store_tile(TensorMap const& map, void const* shared, int const (&c)[rank]) {
  emulator::store_tile(map, shared, rank, c);
}
COSMATI_DEVICE void commit_stores() { emulator::commit_stores(); }
template <int in_flight>
COSMATI_DEVICE void wait_stores_read() {
  emulator::wait_stores(in_flight, true);
}
template <int in_flight>
COSMATI_DEVICE void wait_stores() {
  emulator::wait_stores(in_flight, false);
}
COSMATI_DEVICE void prefetch(TensorMap const&) {}
COSMATI_DEVICE void publish_to_async() { emulator::publish_to_async(); }
COSMATI_DEVICE void permit_unwritten(void const* shared, int bytes) {
  emulator::permit_unwritten(shared, bytes);
}

#endif

}  // namespace cosmati::arch
