// Loads tiles of one operand from global to shared memory by all threads of a block: through registers with
// conversion and rearrangement, or by cp.async without.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"
#include "cosmati/tile/run.h"
#include "cosmati/tile/shared_tile.h"

namespace cosmati {

COSMATI_CONSTEXPR int imin(int a, int b) { return a < b ? a : b; }
COSMATI_CONSTEXPR int imax(int a, int b) { return a > b ? a : b; }

// The division of a tile into items, which a thread moves one at a time: `runs` runs of `width` contiguous
// elements that cover item_depth depths by item_outer outer positions; pack_depth depths form a pack.
struct ItemShape {
  int width, runs, item_depth, item_outer;
};

COSMATI_CONSTEXPR ItemShape item_shape(Along along, int width, int pack_bytes, int pack_depth, int depth,
                                       bool by_copies) {
  if (along == Along::mn) {  // a store of at most 16 bytes along outer
    int const used = imin(width, 16 / pack_bytes);
    return {used, pack_depth, pack_depth, used};
  }
  int const used = imin(width, by_copies ? pack_depth : depth);
  return {used, imax(1, pack_depth / used), imax(used, pack_depth), 1};
}

// Returns the first depth and outer position of item i of a tile. For K-major operands, adjacent lanes take 8
// packs of one row, so that full sectors are read and stores have no bank conflicts (shared_tile.h).
struct ItemPlace {
  int depth, outer;
};
COSMATI_CONSTEXPR int lanes_along_depth(ItemShape shape, int pack_depth, int depth) {
  return imin(depth / shape.item_depth, imax(1, 8 * pack_depth / shape.item_depth));
}
COSMATI_CONSTEXPR ItemPlace item_place(Along along, ItemShape shape, int pack_depth, int depth, int outer,
                                       int i) {
  if (along == Along::mn) {
    int const across = outer / shape.item_outer;
    return {i / across * shape.item_depth, i % across * shape.item_outer};
  }
  int const lanes_deep = lanes_along_depth(shape, pack_depth, depth);
  return {(i / (lanes_deep * outer) * lanes_deep + i % lanes_deep) * shape.item_depth,
          i / lanes_deep % outer};
}

// Loads a run from global memory, with zeros for missing elements; `whole`: none is missing.
template <bool whole, class Element, int width, class AnyRun>
COSMATI_DEVICE void fetch_run(Vector<Element, width>& to, AnyRun const& run) {
  if (whole || run.valid >= width) {
    to = arch::load_constant<Vector<Element, width>>(run.address);
  } else {
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e)
      to[e] = e < run.valid ? arch::load_constant<Element>(run.address + e) : Element{};
  }
}

// The step that starts at first_depth, for a thread. If all its runs have the same depth, first_depth +
// `depth`, a source may find that position once (gemm/source.h).
template <bool has_one_depth, class Source>
COSMATI_DEVICE auto step_of_thread(Source const& source, Index first_depth, int depth) {
  if constexpr (has_one_depth && requires { source.step(first_depth, depth); })
    return source.step(first_depth, depth);
  else
    return source.step(first_depth);
}

template <class Source, class Tile, int pack_depth, int threads, bool whole, bool prefer_copies>
class OperandLoader {
  using Element = typename Source::Element;
  using Pack = typename Tile::Pack;
  static constexpr int element_bytes = static_cast<int>(sizeof(Element));
  static constexpr int pack_bytes = static_cast<int>(sizeof(Pack));
  static constexpr bool same_bytes = pack_depth > 1 || is_same<Element, Pack>;

 public:
  // cp.async copies 4, 8 or 16 bytes without conversion: complete runs if MN-major, one pack at a time if
  // K-major.
  static constexpr int copy_bytes =
      Source::along == Along::mn ? (pack_depth > 1 ? 0 : imin(Source::width, 16 / pack_bytes) * element_bytes)
                                 : imin(Source::width, pack_depth) * element_bytes;
  static constexpr bool by_copies = prefer_copies && same_bytes && copy_bytes >= 4 &&
                                    (Source::along == Along::mn || copy_bytes == pack_bytes);
  static constexpr ItemShape shape =
      item_shape(Source::along, Source::width, pack_bytes, pack_depth, Tile::depth* pack_depth, by_copies);
  static constexpr int depth = Tile::depth * pack_depth;
  static constexpr int items = depth / shape.item_depth * (Tile::outer / shape.item_outer);
  static constexpr int items_per_thread = (items + threads - 1) / threads;
  // Whether all items of a thread have the same depth: K-major operands whose lanes cover a tile's full
  // depth.
  static constexpr int lanes_deep = lanes_along_depth(shape, pack_depth, depth);
  static constexpr bool has_one_depth = Source::along == Along::k && shape.runs == 1 &&
                                        lanes_deep * shape.item_depth == depth && threads % lanes_deep == 0;
  static_assert(depth % shape.item_depth == 0,
                "block_k must be a multiple of the depth of this operand's runs; use a power of two");
  static_assert(Tile::outer % shape.item_outer == 0,
                "the block tile must be a multiple of the width of this operand's runs");

  COSMATI_DEVICE OperandLoader(Source const& source, int thread) : source_(source), thread_(thread) {
    COSMATI_UNROLL
    for (int v = 0; v < items_per_thread; ++v) {
      ItemPlace const place = place_of(v);
      rows_[v] = source.row(place.outer, place.depth);
    }
  }

  // Loads from global memory to registers.
  COSMATI_DEVICE void fetch(Index first_depth) {
    auto const step = step_of_thread<has_one_depth>(source_, first_depth, place_of(0).depth);
    COSMATI_UNROLL
    for (int v = 0; v < items_per_thread; ++v)
      if (exists(v)) fetch_item(element_[v], v, step);
  }

  // Stores from registers to shared memory.
  COSMATI_DEVICE void store(Tile& tile) const {
    COSMATI_UNROLL
    for (int v = 0; v < items_per_thread; ++v)
      if (exists(v)) put_item(tile, place_of(v), element_[v]);
  }

  // Copies from global to shared memory: asynchronously, in a commit group that the caller closes and waits
  // for, or, without cp.async, immediately.
  COSMATI_DEVICE void copy(Tile& tile, Index first_depth) {
    if constexpr (by_copies) {
      auto const step = step_of_thread<has_one_depth>(source_, first_depth, place_of(0).depth);
      COSMATI_UNROLL
      for (int v = 0; v < items_per_thread; ++v)
        if (exists(v)) {
          ItemPlace const place = place_of(v);
          auto const run = run_of(v, step, 0);
          arch::copy_async<copy_bytes>(&tile.pack[place.depth / pack_depth][place.outer], run.address,
                                       imin(run.valid, shape.width) * element_bytes);
        }
    } else {
      fetch(first_depth);
      store(tile);
    }
  }

 private:
  using Elements = Vector<Element, shape.width>;

  COSMATI_DEVICE ItemPlace place_of(int v) const {
    return item_place(Source::along, shape, pack_depth, depth, Tile::outer, thread_ + v * threads);
  }
  COSMATI_DEVICE bool exists(int v) const { return items % threads == 0 || thread_ + v * threads < items; }
  template <class Step>
  COSMATI_DEVICE auto run_of(int v, Step const& step, int r) const {
    int const more = Source::along == Along::mn ? r : r * shape.width;
    return source_.template run<whole>(rows_[v], step, more);
  }

  template <class Step>
  COSMATI_DEVICE void fetch_item(Elements (&to)[shape.runs], int v, Step const& step) const {
    COSMATI_UNROLL
    for (int r = 0; r < shape.runs; ++r) fetch_run<whole>(to[r], run_of(v, step, r));
  }

  COSMATI_DEVICE static Pack pack_of(Element element) {
    if constexpr (is_same<Pack, arch::HalfPair>) {
      f16 const half = arch::number_cast<f16>(element);
      return arch::make_pair(half, half);
    } else {
      return arch::number_cast<Pack>(element);
    }
  }
  COSMATI_DEVICE static void put_item(Tile& tile, ItemPlace place, Elements const (&run)[shape.runs]) {
    if constexpr (pack_depth == 1 && Source::along == Along::mn) {
      Vector<Pack, shape.width> packs;
      COSMATI_UNROLL
      for (int e = 0; e < shape.width; ++e) packs[e] = pack_of(run[0][e]);
      arch::store(&tile.pack[place.depth][place.outer], packs);
    } else if constexpr (pack_depth == 1) {
      COSMATI_UNROLL
      for (int e = 0; e < shape.width; ++e) tile.pack[place.depth + e][place.outer] = pack_of(run[0][e]);
    } else {
      put_bytes(tile, place, run);
    }
  }

  // Interleaves the bytes of four depths into a pack.
  COSMATI_DEVICE static void put_bytes(Tile& tile, ItemPlace place, Elements const (&run)[shape.runs]) {
    int const row = place.depth / pack_depth;
    if constexpr (Source::along == Along::mn && shape.width == 4) {
      unsigned rows[4], columns[4];
      COSMATI_UNROLL
      for (int r = 0; r < 4; ++r) rows[r] = __builtin_bit_cast(unsigned, run[r]);
      arch::transpose_bytes(rows, columns);
      Vector<Pack, 4> packs;
      COSMATI_UNROLL
      for (int e = 0; e < 4; ++e) packs[e] = Pack{columns[e]};
      arch::store(&tile.pack[row][place.outer], packs);
    } else if constexpr (Source::along == Along::mn) {
      COSMATI_UNROLL
      for (int e = 0; e < shape.width; ++e)
        tile.pack[row][place.outer + e] = Pack{joined(run[0][e], run[1][e], run[2][e], run[3][e])};
    } else {
      COSMATI_UNROLL
      for (int p = 0; p < shape.item_depth / pack_depth; ++p) {
        auto const at = [&](int byte) {
          int const e = p * pack_depth + byte;
          return run[e / shape.width][e % shape.width];
        };
        tile.pack[row + p][place.outer] = Pack{joined(at(0), at(1), at(2), at(3))};
      }
    }
  }
  COSMATI_DEVICE static unsigned joined(Element b0, Element b1, Element b2, Element b3) {
    auto const byte = [](Element value) { return static_cast<unsigned>(static_cast<unsigned char>(value)); };
    return byte(b0) | byte(b1) << 8 | byte(b2) << 16 | byte(b3) << 24;
  }

  Source source_;
  int thread_;
  typename Source::Row rows_[items_per_thread];
  Elements element_[items_per_thread][shape.runs];
};

}  // namespace cosmati
