// TMA copies in im2col mode: rows of the unrolled matrix, copied between an NHWC array and shared memory. PTX
// ISA, "im2col mode"; for the contents of a map see cuTensorMapEncodeIm2col.
#pragma once
#include "cosmati/arch/tensor_copy.h"

namespace cosmati::arch {

// Copies from global to shared memory and completes all bytes of the box on the barrier. `c`: channel,
// column, row and image of the first window's corner; the following windows of the box, as many as the map
// specifies, advance along rows, then images. `offset`: the distance, 0 to 255, right and down from each
// window's corner to the element that is read. Elements outside the array are read as zeros.
COSMATI_DEVICE void copy_windows(void* shared, TensorMap const& map, Barrier& barrier, int const (&c)[4],
                                 int const (&offset)[2]) {
#if defined(__CUDACC__)
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]),
      "h"(static_cast<unsigned short>(offset[0])), "h"(static_cast<unsigned short>(offset[1]))
      : "memory");
#else
  emulator::load_windows(shared, map, &barrier, c, offset, 0);
#endif
}
// Multicasts to the same offset in each block of the cluster whose bit is set in `blocks`, and to the barrier
// there.
COSMATI_DEVICE void copy_windows_to_blocks(void* shared, TensorMap const& map, Barrier& barrier,
                                           int const (&c)[4], int const (&offset)[2], unsigned short blocks) {
#if defined(__CUDACC__)
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]),
      "h"(static_cast<unsigned short>(offset[0])), "h"(static_cast<unsigned short>(offset[1])), "h"(blocks)
      : "memory");
#else
  emulator::load_windows(shared, map, &barrier, c, offset, blocks);
#endif
}

// Copies from shared to global memory, in the calling thread's open group of stores; elements outside the
// array are not written.
COSMATI_DEVICE void store_windows(TensorMap const& map, void const* shared, int const (&c)[4]) {
#if defined(__CUDACC__)
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%1, {%2, %3, %4, %5}], [%0];" ::
          "r"(shared_address(shared)),
      "l"(&map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])
      : "memory");
#else
  emulator::store_windows(map, shared, c);
#endif
}

}  // namespace cosmati::arch
