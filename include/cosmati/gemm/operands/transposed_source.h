// An operand that the copying threads of the warp_specialized kernel transpose.
#pragma once
#include "cosmati/gemm/tile_copier.h"

namespace cosmati {

// A matrix of 4-byte elements that is contiguous along the outer index, for K-major tiles: the copying
// threads transpose it, since wgmma reads these types only along k.
template <class Element>
struct TransposedSource : StridedSource<Element, Along::k, 1> {};

// A warp reads 32 neighbors along the outer index and writes each to its own line of the tile, eight of which
// share a bank.
template <class Element, class Tile, int threads>
class TileCopier<TransposedSource<Element>, Tile, threads> {
  static constexpr int warps = threads / 32, rounds = Tile::box.row / warps;
  static_assert(sizeof(Element) == 4 && Tile::along == Along::k && Tile::box.boxes == 1);

 public:
  COSMATI_DEVICE TileCopier(MatrixArguments const& arguments, Index matrix, Index first_outer,
                            Index outer_extent, Index depth_extent, int thread)
      : lane_(thread % 32),
        warp_(thread / 32),
        outer_left_(clamp_to_int(outer_extent - first_outer)),
        depth_extent_(depth_extent),
        column_stride_(arguments.column_stride),
        first_(base_of<Element>(arguments, matrix) + first_outer + lane_ + warp_ * column_stride_) {}

  COSMATI_DEVICE void copy(Tile& tile, Index first_depth) const {
    int const depth_left = clamp_to_int(depth_extent_ - first_depth);
    COSMATI_NO_UNROLL
    for (int line = lane_; line < Tile::box.rows; line += 32) {
      Element const* from = first_ + first_depth * column_stride_ + (line - lane_);
      COSMATI_UNROLL
      for (int i = 0; i < rounds; ++i, from += warps * column_stride_) {
        int const column = warp_ + i * warps;
        auto const place = static_cast<unsigned>(line * Tile::row_bytes + column * 4);
        arch::copy_async<4>(&tile.bytes[0][0][0] + swizzled(place, Tile::swizzle), from,
                            line < outer_left_ && column < depth_left ? 4 : 0);
      }
    }
  }

 private:
  int lane_, warp_, outer_left_;
  Index depth_extent_, column_stride_;
  Element const* first_;
};

}  // namespace cosmati
