// Loads tiles of one operand into the layout that wgmma reads, by threads instead of TMA: cp.async of 16, 8
// or 4 bytes, and for smaller alignments aligned 16-byte loads whose bytes are shifted in registers.
#pragma once
#include "cosmati/gemm/source.h"
#include "cosmati/tile/operand_loader.h"
#include "cosmati/tile/partition.h"
#include "cosmati/tile/shifted_run.h"
#include "cosmati/tile/tensor_tile.h"

namespace cosmati {

// A matrix of 4-byte elements that is contiguous along the outer index, for K-major tiles: the copying
// threads transpose it, since wgmma reads these types only along k.
template <class Element>
struct TransposedSource : StridedSource<Element, Along::k, 1> {
  static constexpr bool transposes = true;
};
template <class Source>
inline constexpr bool is_transposed = requires {
  Source::transposes;
};

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

  // Copies from global to shared memory; complete after waiting for the commit group closed by the caller, or
  // immediately. Elements outside the matrix become zero.
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

// A warp reads 32 neighbors along the outer index and writes each to its own line of the tile, eight of which
// share a bank.
template <class Source, class Tile, int threads>
requires is_transposed<Source>
class TileCopier<Source, Tile, threads> {
  using Element = typename Source::Element;
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
