// Sources and destinations by tensor maps, which TMA loads and stores.
#pragma once
#include "cosmati/arch/tensor_map.h"
#include "cosmati/core/number.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/tile/tensor_box.h"

namespace cosmati {

// The coordinates of a matrix in a map, after those of its elements.
template <int axes_>
struct MatrixCoordinates {
  static constexpr int axes = axes_;
  int at[axes];
};
template <class Maps>
using CoordinatesOf = decltype(Maps{}.coordinates(0));

// A batch of matrices for TMA: a map of rank 3, (contiguous elements, rows, batch), encoded by the host with
// the box that tensor_box() returns for the tile. Base and strides are multiples of 16 bytes.
struct TensorArguments {
  static constexpr bool made_by_kernels = false;
  arch::TensorMap map;
  COSMATI_DEVICE void prefetch() const { arch::prefetch(map); }
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return map; }
  COSMATI_DEVICE static MatrixCoordinates<1> coordinates(Index batch) { return {{static_cast<int>(batch)}}; }
  // The row or column of the box that is loaded in place of the one at `first`: beyond the matrix, TMA loads
  // zeros.
  COSMATI_DEVICE static int first_loaded(int first) { return first; }
};

// A batch of matrices at any addresses: a map of rank 4 of the whole address space, (contiguous elements,
// rows, units of 16 bytes, ranges of address_units). TMA adds the strides of all coordinates to the map's
// address and compares only coordinates with extents, so the last two coordinates select any aligned address,
// and the first two still end with the matrix. `pointers`: an array in device memory.
inline constexpr Index address_origin = 16, address_units = Index{1} << 31, address_ranges = 1 << 14;
struct AddressedTensors {
  static constexpr bool made_by_kernels = false;
  arch::TensorMap map;
  void* const* pointers = nullptr;
  int extent = 0;  // of an operand: its rows, or the columns of B
  COSMATI_DEVICE void prefetch() const { arch::prefetch(map); }
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return map; }
  COSMATI_DEVICE MatrixCoordinates<2> coordinates(Index batch) const {
    auto const address = reinterpret_cast<unsigned long long>(arch::load_constant<void*>(pointers + batch));
    unsigned long long const unit = (address - address_origin) / 16;
    return {{static_cast<int>(unit % address_units), static_cast<int>(unit / address_units)}};
  }
  // A box that lies completely beyond the matrix is an illegal access on an H200, because no memory is mapped
  // at the map's address. The first box of the matrix replaces it, whose products lie outside of D. Along k,
  // every box must begin within the matrix.
  COSMATI_DEVICE int first_loaded(int first) const { return first < extent ? first : 0; }
};

// A map written by a kernel of gemm/bind.h, among the parameters of a grouped problem.
struct TensorMapOfProblem {
  static constexpr bool made_by_kernels = true;
  arch::TensorMapOfDevice bound;
  COSMATI_DEVICE void prefetch() const {}
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return bound.map; }
  COSMATI_DEVICE static MatrixCoordinates<1> coordinates(Index) { return {{0}}; }
  COSMATI_DEVICE static int first_loaded(int first) { return first; }
};

// A thread's access to maps: maps modified by a kernel are acquired before the first use.
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

// Loads one box through a map of rank `rank`, multicast to the blocks of the mask if `many`, otherwise to
// this block.
template <bool many, int rank>
COSMATI_DEVICE void copy_box(void* to, arch::TensorMap const& map, arch::Barrier& barrier,
                             int const (&at)[rank], unsigned short blocks) {
  if constexpr (many)
    arch::copy_tile_to_blocks(to, map, barrier, at, blocks);
  else
    arch::copy_tile(to, map, barrier, at);
}

// Stores one box of D, which begins at element (m, n) of a matrix.
template <Along along, int axes>
COSMATI_DEVICE void store_box(arch::TensorMap const& map, void const* shared,
                              MatrixCoordinates<axes> const& matrix, int m, int n) {
  int to[2 + axes] = {along == Along::k ? n : m, along == Along::k ? m : n};
  COSMATI_UNROLL
  for (int i = 0; i < axes; ++i) to[2 + i] = matrix.at[i];
  arch::store_tile(map, shared, to);
}

// Issues the loads of a tile, at (first_outer, first_depth) of a matrix, for TensorTile::copy(). A box begins
// at offset (`neighbor`, `line`).
template <class Maps>
struct MatrixBoxes {
  static constexpr int axes = CoordinatesOf<Maps>::axes;
  Maps const& maps;
  arch::TensorMap const& map;
  int first_outer, first_depth;
  CoordinatesOf<Maps> matrix;
  template <Along along, bool many>
  COSMATI_DEVICE void copy(void* to, arch::Barrier& barrier, int neighbor, int line,
                           unsigned short blocks) const {
    int const outer = maps.first_loaded(first_outer + (along == Along::k ? line : neighbor));
    int const depth = first_depth + (along == Along::k ? neighbor : line);
    int at[2 + axes] = {along == Along::k ? depth : outer, along == Along::k ? outer : depth};
    COSMATI_UNROLL
    for (int i = 0; i < axes; ++i) at[2 + i] = matrix.at[i];
    copy_box<many>(to, map, barrier, at, blocks);
  }
};

// An operand loaded by TMA. Its Lines, computed once per tile of D, provide the boxes of each step.
template <class Element_, Along along_, class Maps = TensorArguments>
struct TensorSource {
  using Element = Element_;
  using Arguments = Maps;
  static constexpr Along along = along_;  // MN-major (outer) or K-major (depth)

  struct Lines {
    Maps const& maps;
    arch::TensorMap const& map;
    int first_outer;
    CoordinatesOf<Maps> matrix;
    COSMATI_DEVICE Lines(Maps const& all, arch::TensorMap const& of_batch, int first, Index number)
        : maps(all), map(of_batch), first_outer(first), matrix(all.coordinates(number)) {}
    COSMATI_DEVICE MatrixBoxes<Maps> step(int first_depth) const {
      return {maps, map, first_outer, first_depth, matrix};
    }
  };
  // The bytes that TMA writes to a tile of an operand with `outer` rows.
  template <class Tile>
  COSMATI_DEVICE static int loaded_bytes(Index outer) requires(!Maps::made_by_kernels) {
    return lines_of_copy(Tile::box, along, outer) * (static_cast<int>(sizeof(Tile)) / Tile::box.slice_rows);
  }
};

// The same for any source; the boxes of other sources always fill a tile.
template <class Source, class Tile>
COSMATI_DEVICE int loaded_bytes(Index outer) {
  if constexpr (requires { Source::template loaded_bytes<Tile>(outer); })
    return Source::template loaded_bytes<Tile>(outer);
  else
    return static_cast<int>(sizeof(Tile));
}

// D, contiguous along n (depth) or along m (outer); boxes of the 16 rows of a warp (tensor_store()).
template <class Element_, Along along_ = Along::k, class Maps = TensorArguments>
struct TensorDestination {
  using Element = Element_;
  using Arguments = Maps;
  static constexpr Along along = along_;
};

// Strided matrices are loaded by threads, tensor maps by TMA.
template <class Source>
inline constexpr bool is_copied = is_same<typename Source::Arguments, MatrixArguments>;

}  // namespace cosmati
