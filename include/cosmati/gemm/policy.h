// The tiling of a GEMM kernel: plain data with named fields, used as a template argument.
#pragma once
#include "cosmati/tile/multiply.h"

namespace cosmati {

// How operands move from global memory to the multiply instructions.
enum class MainLoop : unsigned char {
  double_buffered,   // global -> registers -> one of two shared buffers; converts and restructures on the way
  multistage,        // cp.async into 3 to 5 shared buffers; sm_80 and later
  warp_specialized,  // TMA issued by a producer warp into a ring of buffers; persistent blocks; sm_90a
  gemv,  // global -> registers, for few rows of D: threads share a tile along k, and add their sums at the
         // end
  tiny,  // a warp loads and multiplies a matrix of the batch alone; several matrices per block
};

// The order in which blocks visit the tiles of D: along m (or n) within a band `raster_width` tiles wide in
// the other direction, band after band, so that concurrent blocks share rows of A and columns of B in the L2
// cache.
enum class Raster : unsigned char { along_m, along_n };

// How the k steps of the tiles are distributed over blocks.
enum class Partition : unsigned char {
  tiles,     // one block per tile
  split_k,   // several blocks share each tile, each with an equal part of k
  stream_k,  // the steps of some tiles are concatenated and divided into equal ranges, one per resident block
  split_k_parallel,  // like split_k, but all blocks store their sums, and a second kernel adds them
};

enum class EpilogueSchedule : unsigned char {
  direct,  // each thread stores its accumulators
  staged,  // through shared memory, in a rolled loop over runs of a row: full-width stores, small code
};

struct GemmPolicy {
  int block_m = 128, block_n = 128, block_k = 8;  // tile of D per block; elements of k per step
  int warp_m = 32, warp_n = 64;                   // tile of D per warp
  int thread_m = 8, thread_n = 8;                 // part of the warp tile per thread, in registers
  int stages = 2;                                 // shared buffers
  int blocks = 1;  // resident blocks per multiprocessor that registers must allow
  MainLoop main_loop = MainLoop::double_buffered;
  Multiply multiply = Multiply::fma;
  Raster raster = Raster::along_m;
  bool promotes = false;   // tensor cores, which truncate, sum one step at a time; the steps are added in f32
  bool fast_sums = false;  // 8-bit floats are summed by tensor cores alone, and not promoted
  int raster_width = 8;
  int cluster_m = 1, cluster_n = 1;  // blocks of a cluster, which load shared tiles once
  int cluster_k =
      1;  // blocks of a cluster that share a tile, each with a part of k; each reduces a slice of it
  bool ping_pong = false;  // two warpgroups with separate tiles alternate: one stores, one multiplies
  Partition partition = Partition::tiles;
  bool full_tiles =
      false;  // every extent is a multiple of the block tile and of the vector widths: no predicates
  EpilogueSchedule epilogue = EpilogueSchedule::direct;
  int warps_k = 1;   // gemv: warps that share a tile, each with a part of every step
  int matrices = 1;  // tiny: matrices per block, each with its own warp

  COSMATI_CONSTEXPR int cluster() const { return cluster_m * cluster_n * cluster_k; }  // blocks
  // The slice of each row that one block stores, if the blocks of a cluster share a tile along k.
  COSMATI_CONSTEXPR GemmPolicy slice() const {
    GemmPolicy policy = *this;
    policy.block_n /= cluster_k;
    policy.warp_n /= cluster_k;
    policy.thread_n /= cluster_k;
    return policy;
  }

  COSMATI_CONSTEXPR int warps_m() const { return block_m / warp_m; }
  COSMATI_CONSTEXPR int warps_n() const { return block_n / warp_n; }
  COSMATI_CONSTEXPR int lanes_m() const { return warp_m / thread_m; }
  COSMATI_CONSTEXPR int lanes_n() const { return warp_n / thread_n; }
  // Warps that multiply; threads of a block, including producers.
  COSMATI_CONSTEXPR int consumer_warps() const { return warps_m() * warps_n() * (ping_pong ? 2 : 1); }
  COSMATI_CONSTEXPR int threads() const {
    return team() * matrices + (main_loop == MainLoop::warp_specialized ? 128 : 0);
  }
  // The consumer threads that share a tile: all of a block, except in `tiny`.
  COSMATI_CONSTEXPR int team() const { return 32 * consumer_warps() * warps_k; }
  // In gemv, all threads have all rows of the tile; those of a warp share its columns and its depths.
  COSMATI_CONSTEXPR int lanes_k() const { return lanes_n() > 0 ? 32 / lanes_n() : 1; }
  COSMATI_CONSTEXPR int thread_k() const { return block_k / (lanes_k() * warps_k); }
  COSMATI_CONSTEXPR friend bool operator==(GemmPolicy const&, GemmPolicy const&) = default;
};

COSMATI_CONSTEXPR char const* name_of(MainLoop loop) {
  return loop == MainLoop::gemv               ? "gemv"
         : loop == MainLoop::tiny             ? "tiny"
         : loop == MainLoop::warp_specialized ? "warp_specialized"
         : loop == MainLoop::multistage       ? "multistage"
                                              : "double_buffered";
}
COSMATI_CONSTEXPR char const* name_of(Raster raster) {
  return raster == Raster::along_m ? "along_m" : "along_n";
}
COSMATI_CONSTEXPR char const* name_of(Partition partition) {
  return partition == Partition::stream_k           ? "stream_k"
         : partition == Partition::split_k          ? "split_k"
         : partition == Partition::split_k_parallel ? "split_k_parallel"
                                                    : "tiles";
}
COSMATI_CONSTEXPR char const* name_of(EpilogueSchedule schedule) {
  return schedule == EpilogueSchedule::direct ? "direct" : "staged";
}

}  // namespace cosmati
