// Sources map indices of an operand to addresses and check whether elements exist. Both operands are indexed
// (outer, depth): outer is m for A and n for B, depth is k.
#pragma once
#include "cosmati/arch/config.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/gemm/requirements.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// The requirements on a source. The constructor takes the block tile's first outer index and the batch:
//   Source(Arguments const&, Index batch, Index first_outer, Index outer_extent, Index depth_extent)
//   Row row(int outer, int depth)      the position of a run in the tile, computed once per tile
//   Step step(Index first_depth)       computed once per step, the same for all threads
//   run<whole>(Row, Step, int more)    the run `more` depths further; with `whole`, all elements exist
// Optionally, if a depth's position is expensive to find, and for threads whose runs all have the same depth:
//   DepthStep step(Index first_depth, int depth)   the position of depth first_depth + depth
//   run<whole>(Row, DepthStep, int)                the run at that depth
template <class T>
concept OperandSource = requires(T const source, typename T::Arguments arguments, typename T::Row row,
                                 typename T::Step step) {
  typename T::Element;
  T(arguments, Index{}, Index{}, Index{}, Index{});
  source.row(0, 0);
  source.step(Index{});
  {source.template run<false>(row, step, 0).valid};
  requires T::width >= 1 && (T::width & (T::width - 1)) == 0;
  requires T::along == Along::mn || T::along == Along::k;
};

// The same requirements as static_assert messages, for authors of sources.
template <class Source>
struct SourceRequirements {
  static_assert(
      requires { typename Source::Element; },
      "a source must define the type of its elements: using Element = ...;");
  static_assert(
      requires { typename Source::Arguments; },
      "a source must define the type of its kernel parameters: using Arguments = ...;");
  static_assert(
      requires { typename Source::Row; } && requires { typename Source::Step; },
      "a source must define two cursors: struct Row, computed once per tile, and struct Step, computed "
      "once per step");
  static_assert(
      requires { requires Source::along == Along::mn || Source::along == Along::k; },
      "a source must define along which index it is contiguous: static constexpr Along along = "
      "Along::mn or Along::k;");
  static_assert(
      requires { requires Source::width >= 1 && (Source::width & (Source::width - 1)) == 0; },
      "a source's width, the elements per run, must be a static constexpr power of two");
  static_assert(
      requires { requires Source::width* static_cast<int>(sizeof(typename Source::Element)) <= 16; },
      "a source's run of width elements must not exceed 16 bytes");
  static_assert(
      required::MadeFrom<Source, typename Source::Arguments, Index, Index, Index, Index>,
      "a source must be constructible: Source(Arguments const&, Index batch, Index first_outer, Index "
      "outer_extent, "
      "Index "
      "depth_extent)");
  static_assert(
      requires(Source const source, typename Source::Row row) { row = source.row(0, 0); },
      "a source must have Row row(int outer, int depth) const: a run's position in the tile");
  static_assert(
      requires(Source const source, typename Source::Step step) { step = source.step(Index{}); },
      "a source must have Step step(Index first_depth) const: the values that all threads share in a step");
  static_assert(
      requires(Source const source, typename Source::Row row, typename Source::Step step,
               typename Source::Element const* address, int valid) {
        address = source.template run<false>(row, step, 0).address;
        valid = source.template run<true>(row, step, 0).valid;
      },
      "a source must have template <bool whole> Run<Element> run(Row const&, Step const&, int more) const");
  static constexpr bool satisfied = OperandSource<Source>;
};

// A strided matrix: element (outer, depth) at outer * row_stride + depth * column_stride. With width > 1 the
// stride along `along` is 1, and the address of every run that starts at a multiple of width is a multiple of
// width elements.
template <class Element_, Along along_, int width_>
struct StridedSource {
  using Element = Element_;
  using Arguments = MatrixArguments;
  static constexpr Along along = along_;
  static constexpr int width = width_;

  struct Row {
    Element const* address;
    int depth;  // beyond all depths if the outer position does not exist
    int valid;  // existing outer positions of the run
  };
  struct Step {
    Index offset;
    int depth_left;  // remaining depths from the step's first
  };

  COSMATI_DEVICE StridedSource(Arguments const& arguments, Index batch, Index first_outer, Index outer_extent,
                               Index depth_extent)
      : data_(base_of<Element>(arguments, batch) + first_outer * arguments.row_stride),
        row_stride_(width > 1 && along == Along::mn ? 1 : arguments.row_stride),
        column_stride_(width > 1 && along == Along::k ? 1 : arguments.column_stride),
        depth_extent_(depth_extent),
        first_outer_(first_outer),
        outer_left_(clamp_to_int(outer_extent - first_outer)) {}

  // Existing outer positions from the tile's first, and depths.
  COSMATI_DEVICE int outer_left() const { return outer_left_; }
  COSMATI_DEVICE Index first_outer() const { return first_outer_; }
  COSMATI_DEVICE Index depth_extent() const { return depth_extent_; }

  COSMATI_DEVICE Row row(int outer, int depth) const {
    constexpr int far = 1 << 30;
    return {data_ + outer * row_stride_ + depth * column_stride_, outer < outer_left_ ? depth : far,
            between_0_and_width(outer_left_ - outer)};
  }
  COSMATI_DEVICE Step step(Index first_depth) const {
    constexpr Index maximum = 1 << 20;  // larger than the depth of any step, smaller than `far`
    Index const left = depth_extent_ - first_depth;
    return {first_depth * column_stride_,
            left < maximum ? static_cast<int>(left) : static_cast<int>(maximum)};
  }
  template <bool whole>
  COSMATI_DEVICE Run<Element> run(Row const& row, Step const& step, int more) const {
    Element const* const address = row.address + step.offset + more * column_stride_;
    if constexpr (whole) return {address, width};
    int const depth_left = step.depth_left - row.depth - more;
    if constexpr (along == Along::k) return {address, between_0_and_width(depth_left)};
    return {address, depth_left > 0 ? row.valid : 0};
  }

 private:
  COSMATI_DEVICE static int between_0_and_width(int count) {
    return count <= 0 ? 0 : count >= width ? width : count;
  }

  Element const* data_;
  Index row_stride_, column_stride_, depth_extent_, first_outer_;
  int outer_left_;
};

// A matrix that is contiguous along `along`, where runs begin at any element: for loaders that shift what
// they load from aligned addresses. A load may touch elements next to a run, within the same 16 bytes; the
// lines are therefore at least 16 bytes apart.
template <class Element_, Along along_>
struct UnalignedSource : StridedSource<Element_, along_, 16 / static_cast<int>(sizeof(Element_))> {
  using StridedSource<Element_, along_, 16 / static_cast<int>(sizeof(Element_))>::StridedSource;
  static constexpr bool unaligned = true;
};
template <class Source>
inline constexpr bool is_unaligned = requires {
  requires Source::unaligned;
};

}  // namespace cosmati
