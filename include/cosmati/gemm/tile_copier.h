// Loads tiles of one operand into the layout that wgmma reads, by threads instead of TMA: cp.async of 16, 8
// or 4 bytes, and for smaller alignments aligned 16-byte loads whose bytes are shifted in registers.
#pragma once
#include "cosmati/gemm/source.h"
#include "cosmati/tile/operand_loader.h"
#include "cosmati/tile/partition.h"
#include "cosmati/tile/shifted_run.h"
#include "cosmati/tile/tensor_tile.h"

namespace cosmati {

// Source: a strided matrix (gemm/source.h) whose runs of `width` elements are aligned. Adjacent threads copy
// a line of the tile's boxes; each thread keeps its position in all lines.
template <class Source, class Tile, int threads>
class TileCopier {
  using Element = typename Source::Element;
  static constexpr int size = Tile::element_bytes;
  static constexpr bool along_depth = Source::along == Along::k;

 public:
  static constexpr bool by_copies = imin(Source::width, 16 / size) * size >= 4;
  static constexpr int width = by_copies ? imin(Source::width, 16 / size) : 16 / size;  // of a run

 private:
  static constexpr int line_runs = Tile::row_bytes / (width * size), lines_at_once = threads / line_runs;
  static constexpr int rounds = (Tile::box.rows + lines_at_once - 1) / lines_at_once;  // of a box
  static constexpr int batch = vector_within(rounds, by_copies ? 8 : 4);  // loads before the first store
  static_assert(
      Tile::along == Source::along && lines_at_once >= 1,
      "a copier's source must be contiguous along the same index as its tile, with at most one run per "
      "thread in a line");

 public:
  // Copies the rows of matrix `matrix` starting at `first_outer`.
  COSMATI_DEVICE TileCopier(MatrixArguments const& arguments, Index matrix, Index first_outer,
                            Index outer_extent, Index depth_extent, int thread)
      : line_(thread / line_runs),
        column_(thread % line_runs * width),
        outer_left_(clamp_to_int(outer_extent - first_outer)),
        depth_extent_(depth_extent),
        line_stride_(along_depth ? arguments.row_stride : arguments.column_stride),
        step_stride_(along_depth && Source::width > 1 ? 1 : arguments.column_stride),
        column_stride_(Source::width > 1 ? 1
                       : along_depth     ? arguments.column_stride
                                         : arguments.row_stride) {
    Element const* const base = base_of<Element>(arguments, matrix);
    first_ = base + first_outer * arguments.row_stride + line_ * line_stride_ + column_ * column_stride_;
    if constexpr (!by_copies)
      bounds_ = {base, base + (outer_extent - 1) * arguments.row_stride +
                           (depth_extent - 1) * arguments.column_stride + 1};
  }

  // Copies from global to shared memory: asynchronously, in a commit group that the caller closes and waits
  // for, or, without cp.async, immediately. Elements outside the matrix become zero.
  COSMATI_DEVICE void copy(Tile& tile, Index first_depth) const {
    int const depth_left = clamp_to_int(depth_extent_ - first_depth);
    int const lines_left = along_depth ? outer_left_ : depth_left,
              columns_left = (along_depth ? depth_left : outer_left_) - column_;
    COSMATI_NO_UNROLL
    for (int box = 0; box < Tile::box.boxes; ++box) {
      int const left = columns_left - box * Tile::box.row;
      int const valid = left < 0 ? 0 : imin(left, width);
      Element const* from = first_ + first_depth * step_stride_ + box * Tile::box.row * column_stride_;
      unsigned char* const to = &tile.bytes[box][0][0];
      COSMATI_NO_UNROLL
      for (int round = 0; round < rounds; round += batch, from += batch * lines_at_once * line_stride_)
        copy_batch(to, from, line_ + round * lines_at_once, lines_left, valid);
    }
  }

 private:
  // Copies `batch` lines of a box starting at `first_line`; `valid` elements of each run exist.
  COSMATI_DEVICE void copy_batch(unsigned char* to, Element const* from, int first_line, int lines_left,
                                 int valid) const {
    ShiftedRun<Element> run[by_copies ? 1 : batch];
    COSMATI_UNROLL
    for (int i = 0; i < batch; ++i) {
      int const line = first_line + i * lines_at_once, existing = line < lines_left ? valid : 0;
      Element const* const at = from + i * lines_at_once * line_stride_;
      if constexpr (!by_copies)
        run[i].load(at, column_stride_, existing, bounds_);
      else if (is_of_box(line))
        arch::copy_async<width * size>(to + offset(line), at, existing * size);
    }
    if constexpr (!by_copies) store_batch(to, run, from, first_line, lines_left, valid);
  }
  COSMATI_DEVICE void store_batch(unsigned char* to, ShiftedRun<Element> const (&run)[batch],
                                  Element const* from, int first_line, int lines_left, int valid) const {
    COSMATI_UNROLL
    for (int i = 0; i < batch; ++i) {
      int const line = first_line + i * lines_at_once, existing = line < lines_left ? valid : 0;
      Element const* const at = from + i * lines_at_once * line_stride_;
      if (is_of_box(line)) arch::store(to + offset(line), run[i].value(at, column_stride_, existing));
    }
  }
  COSMATI_CONSTEXPR static bool is_of_box(int line) {
    return Tile::box.rows % lines_at_once == 0 || line < Tile::box.rows;
  }
  COSMATI_DEVICE int offset(int line) const {
    return static_cast<int>(
        swizzled(static_cast<unsigned>(line * Tile::row_bytes + column_ * size), Tile::swizzle));
  }

  int line_, column_, outer_left_;  // column: the first element of this thread's run
  Index depth_extent_, line_stride_, step_stride_, column_stride_;
  Element const* first_;
  MemoryBounds<Element> bounds_{};
};

}  // namespace cosmati
