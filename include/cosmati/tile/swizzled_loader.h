// Copies tiles of one operand to shared memory without rearrangement: by cp.async of 16, 8 or 4 bytes, and by
// single elements through registers if less is aligned.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/tile/operand_loader.h"
#include "cosmati/tile/swizzled_tile.h"

namespace cosmati {

template <class Source, class Tile, int threads, bool whole>
class SwizzledLoader {
  using Element = typename Source::Element;
  static constexpr int element_bytes = static_cast<int>(sizeof(Element));
  static constexpr int width = imin(Source::width, 16 / element_bytes);
  static constexpr int row_items = Tile::row_bytes / (width * element_bytes);
  static constexpr int items = Tile::rows * row_items;
  static constexpr int items_per_thread = (items + threads - 1) / threads;
  static constexpr bool has_one_depth = Source::along == Along::k && threads % row_items == 0;

 public:
  static constexpr int copy_bytes = width * element_bytes;
  static constexpr bool by_copies = copy_bytes >= 4;

  COSMATI_DEVICE SwizzledLoader(Source const& source, int thread) : source_(source), thread_(thread) {
    COSMATI_UNROLL
    for (int v = 0; v < items_per_thread; ++v) {
      int const along = item(v) % row_items * width, across = item(v) / row_items;
      rows_[v] = Source::along == Along::k ? source.row(across, along) : source.row(along, across);
    }
  }

  // Copies from global to shared memory: asynchronously, in a commit group that the caller closes and waits
  // for, or, without cp.async, immediately.
  COSMATI_DEVICE void copy(Tile& tile, Index first_depth) {
    auto const step = step_of_thread<has_one_depth>(source_, first_depth, item(0) % row_items * width);
    COSMATI_UNROLL
    for (int v = 0; v < items_per_thread; ++v) {
      if (items % threads != 0 && item(v) >= items) continue;
      auto const run = source_.template run<whole>(rows_[v], step, 0);
      unsigned char* const to = tile.at(item(v) / row_items, item(v) % row_items * copy_bytes);
      if constexpr (by_copies) {
        arch::copy_async<copy_bytes>(to, run.address, imin(run.valid, width) * element_bytes);
      } else {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e)
          reinterpret_cast<Element*>(to)[e] =
              e < run.valid ? arch::load_constant<Element>(run.address + e) : Element{};
      }
    }
  }

 private:
  COSMATI_DEVICE int item(int v) const { return thread_ + v * threads; }

  Source source_;
  int thread_;
  typename Source::Row rows_[items_per_thread];
};

}  // namespace cosmati
