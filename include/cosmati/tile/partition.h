// Which elements of a block tile a thread computes: constexpr functions (thread, index) -> position, used by
// the kernels, the epilogue, the bank-conflict tests and the figures in docs.
#pragma once
#include "cosmati/arch/config.h"

namespace cosmati {

// One dimension of a block tile divided among warps and lanes. A lane's `extent` positions are runs of
// `vector` adjacent ones; the runs of the lanes of a warp interleave, so that each access of a warp is
// contiguous.
struct LinePartition {
  int warp_tile;  // positions per warp
  int lanes;      // per warp, in this dimension
  int extent;     // positions per lane
  int vector;     // adjacent positions that a lane accesses together

  COSMATI_CONSTEXPR int position(int warp, int lane, int i) const {
    return warp * warp_tile + i / vector * (lanes * vector) + lane * vector + i % vector;
  }
};

// The position of a thread among the warps of a block and the lanes of a warp.
struct ThreadPlace {
  int warp_m, warp_n, lane_m, lane_n;
};

// Two adjacent lanes share a column, four share a row: 8 lanes that are served together then read two runs of
// A and four of B.
COSMATI_CONSTEXPR ThreadPlace thread_place(int thread, int warps_m, int lanes_m, int lanes_n) {
  int const warp = thread / 32, lane = thread % 32;
  int const pair = lanes_m > 1 ? 2 : 1;
  return {warp % warps_m, warp / warps_m, lane % pair + pair * (lane / (pair * lanes_n)),
          lane / pair % lanes_n};
}

// The largest power of two that divides `extent` and is at most `maximum`.
COSMATI_CONSTEXPR int vector_within(int extent, int maximum) {
  int vector = 1;
  while (vector * 2 <= maximum && extent % (vector * 2) == 0) vector *= 2;
  return vector;
}

}  // namespace cosmati
