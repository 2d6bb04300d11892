// Copies in the im2col mode of the copy engine (TMA): rows of the matrix that unrolling images would write,
// from an NHWC array to shared memory. PTX ISA, "im2col mode"; what a map holds: cuTensorMapEncodeIm2col.
#pragma once
#include "cosmati/arch/tensor_copy.h"

namespace cosmati::arch {

// Global to shared memory; brings the box's bytes, all of them, to the barrier. `c`: the channel, column, row
// and image of the first window's corner, from which the map's walk goes on, along rows, then images, for as
// many windows as the map says; `offset`: how far right and down of its corner each window is read, 0 to 255.
// What lies outside the array is read as zeros.
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
  emulator::load_windows(shared, map, &barrier, c, offset);
#endif
}

}  // namespace cosmati::arch
