// The emulator interface for Hopper's asynchronous instructions in arch/; extends arch/emulator.h.
// Destinations are poisoned until a thread waits for them, and sources are read at that moment.
#pragma once

#if !defined(__CUDACC__)

#include "cosmati/arch/emulator.h"

namespace cosmati::arch {
struct TensorMap;
}

namespace cosmati::emulator {

// An array in global memory and the box of it that one copy moves. Dimension 0 is contiguous.
struct TiledTensor {
  void* address = nullptr;   // a multiple of 16
  int rank = 0;              // 1 to 5
  int element_bytes = 0;     // 1, 2, 4 or 8
  long long extent[5] = {};  // in elements
  long long stride[5] = {};  // in bytes, multiples of 16; stride[0] is not used
  int box[5] = {};           // in elements, 1 to 256; box[0] is a multiple of 16 bytes
  int swizzle_bytes = 0;     // 0, 32, 64 or 128; unless 0, box[0] has this many bytes
};
// Images for the im2col mode: dimensions are (channel, column, row, image). The corners of the windows range
// from `lower` to `upper` beyond the last column and row, `step` apart, in row order.
struct WindowedTensor {
  void* address = nullptr;           // a multiple of 16
  int element_bytes = 0;             // 1, 2, 4 or 8
  long long extent[4] = {};          // in elements
  long long stride[4] = {};          // in bytes, multiples of 16; stride[0] is not used
  int lower[2] = {}, upper[2] = {};  // column, row: -128 to 127
  int step[2] = {1, 1};              // 1 to 8
  int channels = 0, windows = 0;     // per box: at most 256 and 1024
  int swizzle_bytes = 0;             // 0, 32, 64 or 128; unless 0, the channels of a box have this many bytes
};
// Host functions. They throw Error(bad_request) with the valid values.
arch::TensorMap encode_tensor_map(TiledTensor const& tensor);
arch::TensorMap encode_tensor_map(WindowedTensor const& tensor);

// Returns the offset in the block's shared memory, as used in descriptors.
unsigned shared_address(void const* shared);

// mbarrier. `block` is a rank in the cluster; -1: the caller's own.
void init_barrier(void* barrier, int arrivals);
void publish_barriers();
void arrive_at_barrier(void* barrier, int block, int expected_bytes);
void arrive_after_copies(void* barrier);
void send_to_block(void* shared, void const* value, int bytes, void* barrier, int block);
void wait_for_barrier(void* barrier, int parity);
void named_barrier(int id, int threads, bool waits);

// TMA. `blocks`: a mask of ranks in the cluster; 0: the caller's own.
void load_tile(void* shared, arch::TensorMap const& map, void* barrier, int rank, int const* coordinate,
               unsigned blocks);
void load_windows(void* shared, arch::TensorMap const& map, void* barrier, int const* coordinate,
                  int const* offset, unsigned blocks);
void store_tile(arch::TensorMap const& map, void const* shared, int rank, int const* coordinate);
void store_windows(arch::TensorMap const& map, void const* shared, int const* coordinate);
void load_bytes(void* shared, void const* global, int bytes, void* barrier);
void store_bytes(void* global, void const* shared, int bytes);
void commit_stores();
void wait_stores(int in_flight, bool only_read);
void publish_to_async();
void permit_unwritten(void const* shared, int bytes);

// Tensor maps in global memory that a kernel modifies.
void replace_address(arch::TensorMap& map, void* address);
void release_maps();
void acquire_map(arch::TensorMap const& map);

// wgmma. compute(a, b, d, accumulate): a contains 64 rows of 32 bytes of depth, b n columns of 32 bytes of
// depth; d[i] points to the registers of thread i of the warpgroup.
struct WarpgroupProduct {
  using Compute = void (*)(unsigned char const* a, unsigned char const* b, unsigned* const* d,
                           bool accumulate);
  Compute compute;
  char const* name;
  int n, element_bytes, registers;  // registers: of d, 32 bits each
  bool a_along_outer, b_along_outer;
};
// A collective of 128 threads. `a_registers`: null if `a` is a descriptor.
void multiply_warpgroup(WarpgroupProduct const& product, void* d, unsigned const* a_registers,
                        unsigned long long a, unsigned long long b, bool accumulate);
void warpgroup_begin();
void warpgroup_commit();
void warpgroup_wait(int in_flight);
void set_registers(int registers, bool acquires);

// Clusters.
int block_of_cluster();
int blocks_of_cluster();
void cluster_arrive();
void cluster_wait();
void* in_block(void* shared, int block_of_cluster);

// Like launch(), with clusters of `cluster` adjacent blocks, at most 16, which run concurrently and can
// access each other's shared memory; `grid` is a multiple of it.
void launch_clusters(Grid grid, Grid cluster, int threads, unsigned shared_bytes,
                     void (*body)(void const* params), void const* params, int host_threads = 0);

template <auto kernel, class Params>
void launch_kernel_clusters(Grid grid, Grid cluster, int threads, unsigned shared_bytes, Params const& params,
                            int host_threads = 0) {
  launch_clusters(
      grid, cluster, threads, shared_bytes,
      [](void const* bytes) { kernel(*static_cast<Params const*>(bytes)); }, &params, host_threads);
}

}  // namespace cosmati::emulator

#endif
