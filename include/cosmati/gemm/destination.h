// Destinations, the counterpart of sources: addresses of elements of D, C or an epilogue operand.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/gemm/requirements.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// The part of a matrix that a block tile covers. With width > 1, rows are contiguous, and runs that begin at
// a multiple of width are aligned to width elements.
template <class Element, int width>
class MatrixTile {
  static_assert(
      width >= 1 && (width & (width - 1)) == 0 && width * static_cast<int>(sizeof(Element)) <= 16,
      "the width of a destination, or of an operand of the epilogue, must be a power of two elements "
      "in at most 16 bytes");

 public:
  COSMATI_DEVICE MatrixTile(MatrixArguments const& matrix, Index batch, Index first_m, Index first_n)
      : data_(arch::as_global(base_of<Element>(matrix, batch)) + first_m * matrix.row_stride +
              first_n * matrix.column_stride),
        row_stride_(matrix.row_stride),
        column_stride_(width > 1 ? 1 : matrix.column_stride) {}

  // Loads elements (m, n) to (m, n + count - 1), of which the first `valid` exist, converted to Real; n is a
  // multiple of count.
  template <class Real, int count>
  COSMATI_DEVICE void load(int m, int n, int valid, Real (&to)[count]) const {
    constexpr int step = width < count ? width : count;
    COSMATI_UNROLL
    for (int i = 0; i < count; i += step) {
      Element const* const from = data_ + m * row_stride_ + (n + i) * column_stride_;
      if (step > 1 && i + step <= valid) {
        auto const run = arch::load<Vector<Element, step>>(from);
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e) to[i + e] = arch::number_cast<Real>(run[e]);
      } else {
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e)
          to[i + e] = i + e < valid ? arch::number_cast<Real>(from[e * column_stride_]) : Real{};
      }
    }
  }

  COSMATI_DEVICE void prefetch(int m, int n) const { arch::prefetch(data_ + m * row_stride_ + n); }

  // Stores the same elements, rounded to Element.
  template <class Real, int count>
  COSMATI_DEVICE void store(int m, int n, int valid, Real const (&from)[count]) const {
    constexpr int step = width < count ? width : count;
    COSMATI_UNROLL
    for (int i = 0; i < count; i += step) {
      Element* const to = data_ + m * row_stride_ + (n + i) * column_stride_;
      if (step > 1 && i + step <= valid) {
        Vector<Element, step> run;
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e) run[e] = arch::number_cast<Element>(from[i + e]);
        arch::store_global(to, run);
      } else {
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e)
          if (i + e < valid) to[e * column_stride_] = arch::number_cast<Element>(from[i + e]);
      }
    }
  }

 private:
  Element* data_;
  Index row_stride_, column_stride_;
};

// Addressing of D, C and epilogue operands as strided matrices.
struct MatrixGeometry {
  using Arguments = MatrixArguments;
  template <class Element, int width, bool by_m, bool by_n>
  using Tile = MatrixTile<Element, width>;
  template <bool few>
  struct EpilogueArguments {
    using type = FewEpilogueArguments;
  };
};
template <>
struct MatrixGeometry::EpilogueArguments<false> {
  using type = ManyEpilogueArguments;
};

// D as a strided matrix. `along`: whether D is contiguous along n (depth, as K-major A) or along m (outer);
// affects only speed.
template <class Element_, int width_, Along along_ = Along::k>
struct StridedDestination {
  using Element = Element_;
  using Arguments = MatrixArguments;
  using Tile = MatrixTile<Element, width_>;
  static constexpr int width = width_;
  static constexpr Along along = along_;
};
template <class Destination>
COSMATI_CONSTEXPR bool lies_along_m() {
  if constexpr (requires { Destination::along; }) return Destination::along == Along::mn;
  return false;
}

// Requirements on the destination of a kernel's D, with values of type Real, as static_assert messages.
template <class Destination, class Real>
struct DestinationRequirements {
  static_assert(
      requires { typename Destination::Arguments; },
      "a destination must define the type of its kernel parameters: using Arguments = ...;");
  static_assert(
      requires { typename Destination::Tile; },
      "a destination must define Tile, the part of D that a block stores");
  static_assert(
      requires { requires Destination::width >= 1; },
      "a destination must define the number of contiguous elements along n of a store: static constexpr "
      "int width");
  static_assert(
      required::MadeFrom<typename Destination::Tile, typename Destination::Arguments, Index, Index, Index>,
      "a destination's tile must be constructible: Tile(Arguments const&, Index batch, Index first_m, "
      "Index first_n)");
  static_assert(
      requires(typename Destination::Tile const tile, Real const (&value)[4]) { tile.store(0, 0, 4, value); },
      "a destination's tile must have template <int count> void store(int m, int n, int valid, Real const "
      "(&value)[count]) const");
  static constexpr bool satisfied = true;
};

}  // namespace cosmati
