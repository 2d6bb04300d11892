// Operands and results that the tensor copy engine (TMA) moves: sources and destinations by tensor maps.
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/core/number.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// A batch of matrices as the copy engine sees them: a map of rank 3, (neighbours, rows, batch), encoded by
// the host with the box that tensor_box() gives for the tile. Base and strides are multiples of 16 bytes.
struct TensorArguments {
  arch::TensorMap map;
};

template <class Element_, Along along_>
struct TensorSource {
  using Element = Element_;
  using Arguments = TensorArguments;
  static constexpr Along along = along_;  // how neighbours lie: along m or n (outer), or k (depth)
};

// D, whose neighbours lie along n (depth, as they do for A along k) or along m (outer); boxes of the 16 rows
// of a warp by at most 128 bytes of n, swizzled.
template <class Element_, Along along_ = Along::depth>
struct TensorDestination {
  using Element = Element_;
  using Arguments = TensorArguments;
  static constexpr Along along = along_;
};

// Strided matrices come by threads, tensor maps by the copy engine.
template <class Source>
inline constexpr bool is_copied = is_same<typename Source::Arguments, MatrixArguments>;

}  // namespace cosmati
