// Loads operands from global memory to the registers of the threads that multiply them.
#pragma once
#include "cosmati/arch/unaligned.h"
#include "cosmati/gemm/source.h"
#include "cosmati/tile/operand_loader.h"

namespace cosmati {

namespace streaming {

// Loads a thread's elements of one operand: in each of `groups` blocks, `outer` positions at `depth` adjacent
// depths, by the widest vectors along the operand's major that divide the block.
template <class Source, int outer, int depth, int groups>
class Loader {
  using Element = typename Source::Element;
  static constexpr bool deep = Source::along == Along::k;
  static constexpr int width = imin(Source::width, deep ? depth : outer);
  static constexpr int lines = deep ? outer : depth, runs = (deep ? depth : outer) / width;
  static constexpr int rows = deep ? outer : runs;
  static constexpr bool shifts = is_unaligned<Source> && width == Source::width && width > 1;

 public:
  static constexpr int vector = width;

  // Returns the first position to load for the vector at `position` in the tile. Positions that do not exist
  // are replaced by the last existing ones; their products are not stored. A vector along the outer positions
  // is moved back if it can begin anywhere: it is then complete, but contains elements of other positions.
  COSMATI_DEVICE static int first_of(Source const& source, int position) {
    int const left = source.outer_left();
    if constexpr (deep) return imin(position, left - 1);
    if (moves(source)) return imin(position, left - width);
    return imin(position, (left - 1) / width * width);
  }

  // position(i): the outer position of the block's row i, in the tile; `depth_of_thread`: the depth of the
  // thread's first block.
  template <class Position>
  COSMATI_DEVICE Loader(Source const& source, int depth_of_thread, Position const& position)
      : source_(source) {
    COSMATI_UNROLL
    for (int i = 0; i < rows; ++i)
      row_[i] = source.row(first_of(source, position(deep ? i : i * width)), depth_of_thread);
  }

  // Returns how many steps of `block_k` depths, from the first on, contain only existing vectors, for a tile
  // of `extent` outer positions. Shifted vectors also read what follows: the next depths, or the next line.
  COSMATI_DEVICE int whole_steps(int extent, int block_k) const {
    int const left = source_.outer_left();
    bool const has_lines = deep || (shifts ? moves(source_) : left >= extent || left % width == 0);
    Index const depths = source_.depth_extent() - (shifts ? (deep ? width : 1) : 0);
    return has_lines && depths > 0 ? static_cast<int>(depths / block_k) : 0;
  }

  COSMATI_DEVICE auto step(Index first_depth) const { return source_.step(first_depth); }

  // Loads the block `more` depths beyond the thread's first in the step, all of which exists.
  template <class Step>
  COSMATI_DEVICE void load(int group, Step const& step, int more) {
    COSMATI_UNROLL
    for (int line = 0; line < lines; ++line) {
      COSMATI_UNROLL
      for (int r = 0; r < runs; ++r)
        element_[group][line][r] = vector_at(run_at<true>(line, r, step, more).address);
    }
  }

  // The same, with zeros for elements that do not exist: complete vectors first, then the others in a rolled
  // loop over their elements, since they are few.
  template <class Step>
  COSMATI_DEVICE void load_parts(Step const& step, int more) {
    Run<Element> part[lines][runs];
    bool any = false;
    COSMATI_UNROLL
    for (int line = 0; line < lines; ++line) {
      COSMATI_UNROLL
      for (int r = 0; r < runs; ++r) {
        auto const run = run_at<false>(line, r, step, more);
        bool const whole =
            run.valid >= width &&
            (!shifts || run_at<false>(line, r, step, more + (deep ? width : 1)).valid >= width);
        element_[0][line][r] = whole ? vector_at(run.address) : Elements{};
        part[line][r] = {run.address, whole ? 0 : imin(run.valid, width)};
        any = any || part[line][r].valid > 0;
      }
    }
    if (width == 1 || !any) return;
    COSMATI_NO_UNROLL
    for (int e = width - 1; e >= 0; --e) {
      COSMATI_UNROLL
      for (int line = 0; line < lines; ++line) {
        COSMATI_UNROLL
        for (int r = 0; r < runs; ++r) {
          Run<Element> const& run = part[line][r];
          if (e < run.valid)
            arch::push_front(element_[0][line][r], arch::load_constant<Element>(run.address + e));
        }
      }
    }
  }

  template <class Sum>
  COSMATI_DEVICE Sum get(int group, int i, int k) const {
    int const line = deep ? i : k, along = deep ? k : i;
    return arch::number_cast<Sum>(element_[group][line][along / width][along % width]);
  }

 private:
  using Elements = Vector<Element, width>;

  // Whether vectors along the outer positions may be moved back to existing ones.
  COSMATI_DEVICE static bool moves(Source const& source) {
    return shifts && !deep && source.first_outer() + source.outer_left() >= width;
  }
  template <bool whole, class Step>
  COSMATI_DEVICE auto run_at(int line, int r, Step const& step, int more) const {
    return source_.template run<whole>(row_[deep ? line : r], step, more + (deep ? r * width : line));
  }
  COSMATI_DEVICE static Elements vector_at(Element const* address) {
    if constexpr (shifts) return arch::load_unaligned<Elements>(address);
    if constexpr (!is_unaligned<Source>) return arch::load_constant<Elements>(address);
    Elements to;
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) to[e] = arch::load_constant<Element>(address + e);
    return to;
  }

  Source source_;
  typename Source::Row row_[rows];
  Vector<Element, width> element_[groups][lines][runs];
};

}  // namespace streaming

}  // namespace cosmati
