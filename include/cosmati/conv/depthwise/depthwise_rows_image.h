// The rows of an image that a thread of depthwise_rows reads, one after another.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/words.h"
#include "cosmati/conv/depthwise/depthwise_rows_shape.h"

namespace cosmati {

// Reads the columns of one run, `shape.vector` channels each; those outside the image are zero. With
// `shape.ahead`, the next row is loaded while the current one is used; with `prefetches`, it is brought into
// the L2 cache.
template <class Element, DepthwiseRowsShape shape, bool prefetches = false>
class DepthwiseRowsImage {
 public:
  static constexpr int vector = shape.vector, columns = shape.columns_in();
  static constexpr int bytes = vector * static_cast<int>(sizeof(Element));
  static constexpr int own = shape.own_columns();
  using Row = arch::Words<bytes>[columns];
  static constexpr int live_groups = shape.live_groups(), rows_in = shape.rows_in();
  // The rows that a single group of results reads.
  using GroupRows = Row[live_groups][rows_in];

  // Arguments: DepthwiseRowsArguments or DepthwiseRowsFilterArguments; the first row begins at (row, column).
  template <class Arguments>
  COSMATI_DEVICE DepthwiseRowsImage(Arguments const& all, int image, int channel, int row, int column)
      : line_(arch::as_global(static_cast<Element const*>(all.image)) + image * all.image_batch +
              channel * all.image_channel + row * all.image_row + column * Index{all.image_column}),
        row_(row),
        column_(column) {
    if constexpr (shape.ahead) load(all, next_);
  }

  template <class Arguments>
  COSMATI_DEVICE void take(Arguments const& all, Row& to) {
    if constexpr (shape.ahead) {
      COSMATI_UNROLL
      for (int x = 0; x < columns; ++x) to[x] = next_[x];
    } else {
      load(all, to);
    }
    ++row_;
    line_ += all.image_row;
    if constexpr (shape.ahead)
      load(all, next_);
    else if constexpr (prefetches)
      prefetch(all);
  }

  // All loads are in flight at once.
  template <class Arguments>
  COSMATI_DEVICE void take_group(Arguments const& all, GroupRows& to) {
    COSMATI_UNROLL
    for (int i = 0; i < live_groups; ++i) {
      COSMATI_UNROLL
      for (int in = 0; in < rows_in; ++in) take(all, to[i][in]);
    }
  }

  template <class Sum>
  COSMATI_DEVICE static void widen(Row const& row, Sum (&value)[columns][vector]) {
    COSMATI_UNROLL
    for (int x = 0; x < columns; ++x) {
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v) value[x][v] = arch::widened<Element>(row[x], v);
    }
  }

 private:
  template <class Arguments>
  COSMATI_DEVICE void load(Arguments const& all, Row& to) const {
    bool const exists = static_cast<unsigned>(row_) < static_cast<unsigned>(all.height);
    COSMATI_UNROLL
    for (int x = 0; x < columns; ++x)
      to[x] = arch::load_words<bytes>(
          line_ + x * all.image_column,
          exists && static_cast<unsigned>(column_ + x) < static_cast<unsigned>(all.width));
  }
  // Prefetches the columns of the next row that no run before this one reads.
  template <class Arguments>
  COSMATI_DEVICE void prefetch(Arguments const& all) const {
    if (static_cast<unsigned>(row_) >= static_cast<unsigned>(all.height)) return;
    COSMATI_UNROLL
    for (int x = columns - own; x < columns; ++x)
      if (static_cast<unsigned>(column_ + x) < static_cast<unsigned>(all.width))
        arch::prefetch(line_ + x * all.image_column);
  }

  Element const* line_;
  int row_, column_;
  Row next_;
};

}  // namespace cosmati
