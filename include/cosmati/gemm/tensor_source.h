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
  arch::TensorMap map;
  COSMATI_DEVICE void prefetch() const { arch::prefetch(map); }
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return map; }
  COSMATI_DEVICE static int place(Index batch) { return static_cast<int>(batch); }
};

// Maps that a kernel of gemm/bind.h has made from pointers: one for each matrix of a batch, in device memory,
struct TensorMapArray {
  arch::TensorMapOfDevice const* maps = nullptr;
  COSMATI_DEVICE void prefetch() const {}  // it may not be there yet
  COSMATI_DEVICE arch::TensorMap const& of(Index batch) const { return maps[batch].map; }
  COSMATI_DEVICE static int place(Index) { return 0; }
};

// ... or one among the parameters of a problem that lie there.
struct TensorMapOfProblem {
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
template <>
struct MapUse<TensorArguments> {
  COSMATI_DEVICE arch::TensorMap const& operator()(TensorArguments const& maps, Index) const {
    return maps.map;
  }
};

template <class Element_, Along along_, class Maps = TensorArguments>
struct TensorSource {
  using Element = Element_;
  using Arguments = Maps;
  static constexpr Along along = along_;  // how neighbours lie: along m or n (outer), or k (depth)
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
