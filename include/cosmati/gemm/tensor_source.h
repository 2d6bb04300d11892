// Operands and results that the tensor copy engine (TMA) moves: sources and destinations by tensor maps.
#pragma once
#include "cosmati/arch/tensor_map.h"
#include "cosmati/core/number.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// A batch of matrices as the copy engine sees them: a map of rank 3, (neighbours, rows, batch), encoded by
// the host with the box that tensor_box() gives for the tile. Base and strides are multiples of 16 bytes.
struct TensorArguments {
  static constexpr bool made_by_kernels = false;
  arch::TensorMap map;
  COSMATI_DEVICE void prefetch() const { arch::prefetch(map); }
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return map; }
  COSMATI_DEVICE static int place(Index batch) { return static_cast<int>(batch); }
};

// Maps that a kernel of gemm/bind.h has made from pointers: one for each matrix of a batch, in device memory,
struct TensorMapArray {
  static constexpr bool made_by_kernels = true;
  arch::TensorMapOfDevice const* maps = nullptr;
  COSMATI_DEVICE void prefetch() const {}  // it may not be there yet
  COSMATI_DEVICE arch::TensorMap const& of(Index batch) const { return maps[batch].map; }
  COSMATI_DEVICE static int place(Index) { return 0; }
};

// ... or one among the parameters of a problem that lie there.
struct TensorMapOfProblem {
  static constexpr bool made_by_kernels = true;
  arch::TensorMapOfDevice bound;
  COSMATI_DEVICE void prefetch() const {}
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return bound.map; }
  COSMATI_DEVICE static int place(Index) { return 0; }
};

// A thread's way to maps: what a kernel has changed is acquired before its first use.
template <class Maps>
struct MapUse {
  arch::TensorMap const* last = nullptr;
  COSMATI_DEVICE arch::TensorMap const& operator()(Maps const& maps, Index batch) {
    arch::TensorMap const& map = maps.of(batch);
    if (&map != last) arch::acquire(map);
    last = &map;
    return map;
  }
};
template <class Maps>
requires(!Maps::made_by_kernels) struct MapUse<Maps> {
  COSMATI_DEVICE arch::TensorMap const& operator()(Maps const& maps, Index) const { return maps.map; }
};

// One box by a map of that rank, to the blocks of the mask if they are `many`, else to the own one.
template <bool many, int rank>
COSMATI_DEVICE void copy_box(void* to, arch::TensorMap const& map, arch::Barrier& barrier,
                             int const (&at)[rank], unsigned short blocks) {
  if constexpr (many)
    arch::copy_tile_to_blocks(to, map, barrier, at, blocks);
  else
    arch::copy_tile(to, map, barrier, at);
}

// What TensorTile::copy() asks for: the boxes of the tile at (first_outer, first_depth) of a matrix. One box
// begins `neighbour` and `line` elements behind.
struct MatrixBoxes {
  arch::TensorMap const& map;
  int first_outer, first_depth, batch;
  template <Along along, bool many>
  COSMATI_DEVICE void copy(void* to, arch::Barrier& barrier, int neighbour, int line,
                           unsigned short blocks) const {
    int const at[3] = {(along == Along::depth ? first_depth : first_outer) + neighbour,
                       (along == Along::depth ? first_outer : first_depth) + line, batch};
    copy_box<many>(to, map, barrier, at, blocks);
  }
};

// An operand that the copy engine brings. Its Lines, found once for a tile of D, give the boxes of each step.
template <class Element_, Along along_, class Maps = TensorArguments>
struct TensorSource {
  using Element = Element_;
  using Arguments = Maps;
  static constexpr Along along = along_;  // how neighbours lie: along m or n (outer), or k (depth)

  struct Lines {
    arch::TensorMap const& map;
    int first_outer, batch;
    COSMATI_DEVICE Lines(Maps const& maps, arch::TensorMap const& of_batch, int first, Index matrix)
        : map(of_batch), first_outer(first), batch(maps.place(matrix)) {}
    COSMATI_DEVICE MatrixBoxes step(int first_depth) const { return {map, first_outer, first_depth, batch}; }
  };
};

// D, whose neighbours lie along n (depth, as they do for A along k) or along m (outer); boxes of the 16 rows
// of a warp by at most 128 bytes of n, swizzled.
template <class Element_, Along along_ = Along::depth, class Maps = TensorArguments>
struct TensorDestination {
  using Element = Element_;
  using Arguments = Maps;
  static constexpr Along along = along_;
};

// Strided matrices come by threads, tensor maps by the copy engine.
template <class Source>
inline constexpr bool is_copied = is_same<typename Source::Arguments, MatrixArguments>;

}  // namespace cosmati
