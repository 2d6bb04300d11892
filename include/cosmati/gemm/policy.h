// How a GEMM kernel is cut into tiles: plain data with named fields, used as a template argument.
#pragma once
#include "cosmati/tile/multiply.h"

namespace cosmati {

// How operands travel from global memory to the multiply.
enum class MainLoop : unsigned char {
  double_buffered,   // global -> registers -> one of two shared buffers; converts and restructures on the way
  multistage,        // cp.async into 3 to 5 shared buffers; sm_80 and later
  warp_specialized,  // TMA by a warp of its own into a ring of buffers; blocks stay for many tiles; sm_90a
};

// In which order blocks walk over the tiles of D: consecutive blocks go along m (or n) within a band that is
// `raster_width` tiles wide in the other direction, band after band, so that the blocks that run at one time
// share rows of A and columns of B in the L2 cache.
enum class Raster : unsigned char { along_m, along_n };

// How the steps of k of the tiles are dealt out to blocks.
enum class Partition : unsigned char {
  tiles,     // a tile is one block's
  split_k,   // so many blocks share each tile, each an equal part of k
  stream_k,  // the steps of some tiles, end to end, are cut into equal ranges, one for each block that runs
};

enum class EpilogueSchedule : unsigned char {
  direct,  // each thread stores what it accumulated
  staged,  // through shared memory, in a rolled loop over runs of a row: whole stores, small code
};

struct GemmPolicy {
  int block_m = 128, block_n = 128, block_k = 8;  // the tile of D that a block computes; elements of k a step
  int warp_m = 32, warp_n = 64;                   // the tile of D that a warp computes
  int thread_m = 8, thread_n = 8;                 // the part of it that a thread keeps in registers
  int stages = 2;                                 // shared buffers
  int blocks = 1;  // resident blocks a multiprocessor that registers must allow
  MainLoop main_loop = MainLoop::double_buffered;
  Multiply multiply = Multiply::fma;
  Raster raster = Raster::along_m;
  int raster_width = 8;
  int cluster_m = 1, cluster_n = 1;  // blocks of a cluster, which load the tiles that they share once
  int cluster_k = 1;  // blocks of a cluster that share a tile, each a part of k: each adds up a slice of it
  bool ping_pong = false;  // each of two warpgroups has tiles of its own: one stores, one multiplies
  Partition partition = Partition::tiles;
  bool whole = false;  // every extent is a multiple of the block tile and of the vector widths: no predicates
  EpilogueSchedule epilogue = EpilogueSchedule::direct;

  COSMATI_CONSTEXPR int cluster() const { return cluster_m * cluster_n * cluster_k; }  // blocks
  // Of the tile that a cluster's parts of k have in common, what one block stores: a slice of each row.
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
  // Warps that multiply; threads of a block, those that load included.
  COSMATI_CONSTEXPR int consumer_warps() const { return warps_m() * warps_n() * (ping_pong ? 2 : 1); }
  COSMATI_CONSTEXPR int threads() const {
    return 32 * consumer_warps() + (main_loop == MainLoop::warp_specialized ? 128 : 0);
  }
  COSMATI_CONSTEXPR friend bool operator==(GemmPolicy const&, GemmPolicy const&) = default;
};

COSMATI_CONSTEXPR char const* name_of(MainLoop loop) {
  return loop == MainLoop::warp_specialized ? "warp_specialized"
         : loop == MainLoop::multistage     ? "multistage"
                                            : "double_buffered";
}
COSMATI_CONSTEXPR char const* name_of(Raster raster) {
  return raster == Raster::along_m ? "along_m" : "along_n";
}
COSMATI_CONSTEXPR char const* name_of(Partition partition) {
  return partition == Partition::stream_k  ? "stream_k"
         : partition == Partition::split_k ? "split_k"
                                           : "tiles";
}
COSMATI_CONSTEXPR char const* name_of(EpilogueSchedule schedule) {
  return schedule == EpilogueSchedule::direct ? "direct" : "staged";
}

}  // namespace cosmati
