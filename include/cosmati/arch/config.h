// Qualifiers of device code. One kernel source is compiled by nvcc and NVRTC for a GPU, and by the host's
// compiler for the emulator; the differences are confined to arch/.
#pragma once
#include "cosmati/core/config.h"

#if defined(__CUDACC__)
#define COSMATI_DEVICE __device__ __forceinline__
// A kernel with at most `threads` threads per block and registers for `blocks` resident blocks.
#define COSMATI_KERNEL(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
// Declares a kernel of clusters of `cluster` blocks along x.
#define COSMATI_CLUSTER_KERNEL(threads, blocks, cluster) \
  __global__ void __launch_bounds__(threads, blocks) __cluster_dims__(cluster, 1, 1)
#define COSMATI_PARAMETER const __grid_constant__
#define COSMATI_UNROLL _Pragma("unroll")
#define COSMATI_NO_UNROLL _Pragma("unroll 1")
#else
#define COSMATI_DEVICE inline
#define COSMATI_KERNEL(threads, blocks) void
#define COSMATI_CLUSTER_KERNEL(threads, blocks, cluster) void
#define COSMATI_PARAMETER const
#define COSMATI_UNROLL
#define COSMATI_NO_UNROLL
#endif
